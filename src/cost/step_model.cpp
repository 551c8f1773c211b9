#include "cost/step_model.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "cost/price.hpp"
#include "cost/walk.hpp"

namespace racktwin::cost {
namespace {

// Seconds, by what bounds them.
struct Part {
  double compute = 0, memory = 0, communication = 0, overhead = 0;
  double total() const { return compute + memory + communication + overhead; }
  void add(const Part& b) {
    compute += b.compute;
    memory += b.memory;
    communication += b.communication;
    overhead += b.overhead;
  }
  // `times` runs of a kernel: floors are overhead, except on the wires.
  void add(const Price& price, double times) {
    const double busy = times * price.busy.in(unit::sec);
    const double floor = times * price.floor.in(unit::sec);
    switch (price.bound) {
      case Bound::compute:
        compute += busy;
        overhead += floor;
        return;
      case Bound::memory:
        memory += busy;
        overhead += floor;
        return;
      case Bound::communication:
        communication += busy + floor;
        return;
    }
  }
};

// What depends on one count alone, computed when first asked for.
class Table {
 public:
  template <class Fill>
  const Part& at(std::int64_t n, const Fill& fill) {
    const auto index = static_cast<std::size_t>(n);
    if (index < totals_.size() && totals_[index] >= 0) return parts_[index];
    return find(index, fill);
  }
  template <class Fill>
  double total(std::int64_t n, const Fill& fill) {
    const auto index = static_cast<std::size_t>(n);
    if (index < totals_.size() && totals_[index] >= 0) return totals_[index];
    return find(index, fill).total();
  }

 private:
  static constexpr std::size_t most = std::size_t{1} << 20;  // 40 MiB; beyond: not kept

  template <class Fill>
  const Part& find(std::size_t index, const Fill& fill) {
    if (index >= most) {
      beyond_ = fill(static_cast<double>(index));
      return beyond_;
    }
    if (index >= totals_.size()) {
      const std::size_t size = std::min(most, std::max(index + 1, 2 * index));
      totals_.resize(size, -1);
      parts_.resize(size);
    }
    parts_[index] = fill(static_cast<double>(index));
    totals_[index] = parts_[index].total();
    return parts_[index];
  }

  std::vector<double> totals_;  // apart, so that a rank's look-up touches 8 bytes; -1: unknown
  std::vector<Part> parts_;
  Part beyond_;
};

// Equal attention kernels, all layers together: seconds per token, per pair and per sequence.
struct AttentionTerm {
  double times = 1;
  double floor = 0;
  Linear compute, memory;
  bool bounded = false, per_sequence = false;

  bool same_kernel(const AttentionTerm& b) const {
    return floor == b.floor && compute == b.compute && memory == b.memory && bounded == b.bounded &&
           per_sequence == b.per_sequence;
  }
  void fold_times() {
    floor *= times;
    compute = compute.scaled(times);
    memory = memory.scaled(times);
    times = 1;
  }
  double busy(double tokens, double pairs, double sequences) const {
    return std::max(compute.at(tokens, pairs, sequences), memory.at(tokens, pairs, sequences));
  }
};

struct AttentionWork {
  double tokens = 0, pairs = 0, bounded = 0, sequences = 0;
};

AttentionWork prefill_work(const RankWork& work) {
  return {.tokens = static_cast<double>(work.prefill_tokens),
          .pairs = static_cast<double>(work.prefill_pairs),
          .bounded = static_cast<double>(work.prefill_pairs_windowed),
          .sequences = static_cast<double>(work.prefill_sequences)};
}
AttentionWork decode_work(const RankWork& work) {
  return {.tokens = static_cast<double>(work.decode_tokens),
          .pairs = static_cast<double>(work.decode_context),
          .bounded = static_cast<double>(work.decode_context_windowed),
          .sequences = static_cast<double>(work.decode_sequences)};
}

double attention_total(const std::vector<AttentionTerm>& terms, const AttentionWork& work) {
  double sum = 0;
  for (const AttentionTerm& term : terms) {
    const double pairs = term.bounded ? work.bounded : work.pairs;
    const double tokens = term.per_sequence ? work.sequences : work.tokens;
    if (tokens + pairs + work.sequences > 0)
      sum += term.floor + term.busy(tokens, pairs, work.sequences);
  }
  return sum;
}

void add_attention(Part& part, const std::vector<AttentionTerm>& terms, const AttentionWork& work) {
  for (const AttentionTerm& term : terms) {
    const double pairs = term.bounded ? work.bounded : work.pairs;
    const double tokens = term.per_sequence ? work.sequences : work.tokens;
    if (tokens + pairs + work.sequences <= 0) continue;
    const double compute = term.compute.at(tokens, pairs, work.sequences);
    const double memory = term.memory.at(tokens, pairs, work.sequences);
    (compute > memory ? part.compute : part.memory) += std::max(compute, memory);
    part.overhead += term.floor;
  }
}

// An exchange: busy time is the longer of the busiest rank's sending and the hottest receiving.
struct ExchangeTerm {
  double times = 0, floor = 0, out = 0, in = 0;  // seconds, per token
  bool draft = false;
};

class SpeedOfLight final : public StepModel {
 public:
  explicit SpeedOfLight(const StepModelSpec& spec)
      : spec_(spec),
        pricer_(spec),
        rows_(walk(spec.model, spec.parallelism, spec.calibration.expert_skew, spec.draft_tokens)),
        pp_(spec.parallelism.pp),
        group_(1 + spec.draft_tokens) {
    RACKTWIN_CHECK(check(spec.model, spec.parallelism).ok());
    build_padding();
    for (const Row& row : rows_) {
      compile(row);
      kernels_ += passes(row, 1) * row.shape.count;
    }
    for (AttentionTerm& term : prefill_) term.fold_times();
    for (AttentionTerm& term : decode_) term.fold_times();
  }

  StepCost cost(std::span<const RankWork> ranks) const override {
    const Slowest slowest = find_slowest(ranks);
    const Part part = whole(slowest);
    return {.compute = part.compute * unit::sec,
            .memory = part.memory * unit::sec,
            .communication = part.communication * unit::sec,
            .overhead = part.overhead * unit::sec};
  }

  std::vector<OperatorCost> explain(std::span<const RankWork> ranks) const override;

 private:
  // The rank that every layer waits for, and what all ranks bring to the shared part.
  // Simplified: one rank is the slowest in every layer. Wrong when layers differ in kind and
  // ranks in mix, so that different ranks lag in different layers.
  struct Slowest {
    RankWork work;  // one micro-batch
    std::int64_t head = 0;
    std::int64_t all_tokens = 0, all_drafts = 0, busiest_tokens = 0, busiest_drafts = 0;
    std::int64_t sequences = 0;
    double local = -1;
  };

  void compile(const Row& row);
  double passes(const Row& row, double head_rows) const;
  Part fold(Driver driver, const Load& load, double head_rows) const;
  void build_padding();
  std::int64_t rows_of(const RankWork& micro) const;
  std::int64_t draft_rows_of(const RankWork& micro) const;
  bool captured(std::int64_t tokens) const;
  Load load(const Slowest& slowest) const;

  Slowest find_slowest(std::span<const RankWork> ranks) const;
  double local_total(const RankWork& micro, std::int64_t head) const;
  Part local(const RankWork& micro, std::int64_t head) const;
  Part whole(const Slowest& slowest) const;
  double host_gap(const Slowest& slowest, double gpu) const;

  // Fills of the tables.
  Part tokens_part(double n) const { return fold(Driver::tokens, {.tokens = n}, 0); }
  Part head_part(double n) const { return fold(Driver::head, {.head = std::ceil(n / pp_)}, n); }
  Part drafts_part(double n) const { return fold(Driver::draft, {.drafts = n}, 0); }
  Part experts_part(double n) const { return fold(Driver::experts, {.all_tokens = n}, 0); }
  Part draft_experts_part(double n) const {
    return fold(Driver::draft_experts, {.all_drafts = n}, 0);
  }
  bool drafts() const { return spec_.draft_tokens > 0 && spec_.model.mtp.has_value(); }

  StepModelSpec spec_;
  Pricer pricer_;
  std::vector<Row> rows_;
  double pp_;
  std::int64_t group_;  // tokens that a sequence brings to a decode step
  // Rows of the graph that holds so many sequences, and so many decode tokens.
  std::vector<std::int64_t> padded_, padded_rows_;
  double kernels_ = 0;  // launched per step
  std::vector<AttentionTerm> prefill_, decode_;
  std::vector<ExchangeTerm> exchanges_;
  // Lazily filled, so that cost() stays a pure function; one thread per model.
  mutable Table tokens_, head_, drafts_, experts_, draft_experts_;
};

// Micro-batches that pass a kernel: pp through each layer of the stage that sets the pace; the
// head once per micro-batch that has rows for it; a hop to the next stage is paid once.
double SpeedOfLight::passes(const Row& row, double head_rows) const {
  if (row.shape.kind == OperatorKind::collective && row.shape.collective == CollectiveKind::send)
    return 1;
  return row.driver == Driver::head ? std::min(pp_, head_rows) : pp_;
}

void SpeedOfLight::compile(const Row& row) {
  const double times = pp_ * row.shape.count;
  const double floor = pricer_.floor(row.shape);
  if (row.driver == Driver::exchange || row.driver == Driver::draft_exchange) {
    const double rate = pricer_.wire_rate(row);
    exchanges_.push_back({.times = times,
                          .floor = floor,
                          .out = row.traffic * rate,
                          .in = row.traffic_in * rate,
                          .draft = row.driver == Driver::draft_exchange});
    return;
  }
  const bool decode = row.driver == Driver::decode || row.driver == Driver::draft_decode;
  if (!decode && row.driver != Driver::prefill) return;
  const double flop = pricer_.compute_rate(row.shape), byte = pricer_.memory_rate(row.shape);
  const Linear moved{row.activations.token + row.kv.token, row.activations.pair + row.kv.pair,
                     row.activations.sequence + row.kv.sequence};
  const AttentionTerm term{.times = times,
                           .floor = floor,
                           .compute = row.flops.scaled(flop),
                           .memory = moved.scaled(byte),
                           .bounded = row.bounded,
                           .per_sequence = row.driver == Driver::draft_decode};
  std::vector<AttentionTerm>& terms = decode ? decode_ : prefill_;
  for (AttentionTerm& known : terms) {
    if (!known.same_kernel(term)) continue;
    known.times += times;
    return;
  }
  terms.push_back(term);
}

Part SpeedOfLight::fold(Driver driver, const Load& load, double head_rows) const {
  Part part;
  for (const Row& row : rows_) {
    if (row.driver != driver) continue;
    if (!amount(row, load).any()) continue;
    const Operator op = evaluate(row, load);
    part.add(pricer_.price(row, op), passes(row, head_rows) * row.shape.count);
  }
  return part;
}

// A CUDA graph is captured for so many sequences, each with its draft tokens; a smaller batch
// is padded up to it. In a mixed step prompts fill the padding, so that more work never takes
// less time. Dummy tokens choose no experts.
void SpeedOfLight::build_padding() {
  std::vector<int>& sizes = spec_.engine.graph_sizes;
  std::sort(sizes.begin(), sizes.end());
  if (sizes.empty()) return;
  RACKTWIN_CHECK(sizes.front() > 0);
  padded_.resize(static_cast<std::size_t>(sizes.back()) + 1);
  for (std::size_t n = 1; n < padded_.size(); ++n)
    padded_[n] = *std::lower_bound(sizes.begin(), sizes.end(), static_cast<int>(n));
  padded_rows_.resize((padded_.size() - 1) * static_cast<std::size_t>(group_) + 1);
  for (std::size_t n = 1; n < padded_rows_.size(); ++n) {
    const auto tokens = static_cast<std::size_t>(group_);
    padded_rows_[n] = padded_[(n + tokens - 1) / tokens] * group_;
  }
}

std::int64_t SpeedOfLight::rows_of(const RankWork& micro) const {
  const std::int64_t tokens = micro.prefill_tokens + micro.decode_tokens;
  const auto decoded = static_cast<std::size_t>(micro.decode_tokens);
  return decoded < padded_rows_.size() ? std::max(tokens, padded_rows_[decoded]) : tokens;
}

std::int64_t SpeedOfLight::draft_rows_of(const RankWork& micro) const {
  const auto sequences = static_cast<std::size_t>(micro.decode_sequences);
  return sequences < padded_.size() ? padded_[sequences] : micro.decode_sequences;
}

bool SpeedOfLight::captured(std::int64_t tokens) const {
  return tokens < static_cast<std::int64_t>(padded_rows_.size());
}

double SpeedOfLight::local_total(const RankWork& micro, std::int64_t head) const {
  double sum = tokens_.total(rows_of(micro), [this](double n) { return tokens_part(n); }) +
               head_.total(head, [this](double n) { return head_part(n); });
  if (drafts())
    sum += drafts_.total(draft_rows_of(micro), [this](double n) { return drafts_part(n); });
  sum += attention_total(decode_, decode_work(micro));
  if (micro.prefill_tokens + micro.prefill_sequences + micro.prefill_pairs +
          micro.prefill_pairs_windowed >
      0)
    sum += attention_total(prefill_, prefill_work(micro));
  return sum;
}

Part SpeedOfLight::local(const RankWork& micro, std::int64_t head) const {
  Part part = tokens_.at(rows_of(micro), [this](double n) { return tokens_part(n); });
  part.add(head_.at(head, [this](double n) { return head_part(n); }));
  if (drafts())
    part.add(drafts_.at(draft_rows_of(micro), [this](double n) { return drafts_part(n); }));
  add_attention(part, decode_, decode_work(micro));
  add_attention(part, prefill_, prefill_work(micro));
  return part;
}

// `a` does no more than `b` of anything.
bool no_more(const RankWork& a, const RankWork& b) {
  return a.decode_context <= b.decode_context && a.decode_tokens <= b.decode_tokens &&
         a.prefill_tokens <= b.prefill_tokens && a.prefill_pairs <= b.prefill_pairs &&
         a.decode_sequences <= b.decode_sequences &&
         a.decode_context_windowed <= b.decode_context_windowed &&
         a.prefill_sequences <= b.prefill_sequences &&
         a.prefill_pairs_windowed <= b.prefill_pairs_windowed;
}

SpeedOfLight::Slowest SpeedOfLight::find_slowest(std::span<const RankWork> ranks) const {
  RACKTWIN_CHECK(ranks.size() == static_cast<std::size_t>(spec_.parallelism.dp));
  const int pp = spec_.parallelism.pp;
  Slowest slowest;
  const RankWork* best = nullptr;
  for (const RankWork& rank : ranks) {
    const std::int64_t tokens = rank.prefill_tokens + rank.decode_tokens;
    const std::int64_t head = rank.prefill_sequences + rank.decode_tokens;
    slowest.all_tokens += tokens;
    slowest.all_drafts += rank.decode_sequences;
    slowest.busiest_tokens = std::max(slowest.busiest_tokens, tokens);
    slowest.busiest_drafts = std::max(slowest.busiest_drafts, rank.decode_sequences);
    slowest.sequences = std::max(slowest.sequences, rank.prefill_sequences + rank.decode_sequences);
    if (best != nullptr && no_more(rank, *best)) continue;  // hence no slower
    const RankWork micro = pp == 1 ? rank : micro_batch(rank, pp);
    const double local = local_total(micro, head);
    if (local <= slowest.local) continue;
    best = &rank;
    slowest.local = local;
    slowest.work = micro;
    slowest.head = head;
  }
  RACKTWIN_CHECK(slowest.all_tokens > 0);
  const auto part = [pp](std::int64_t whole) { return pp == 1 ? whole : (whole + pp - 1) / pp; };
  slowest.all_tokens = part(slowest.all_tokens);
  slowest.all_drafts = part(slowest.all_drafts);
  slowest.busiest_tokens = part(slowest.busiest_tokens);
  slowest.busiest_drafts = part(slowest.busiest_drafts);
  return slowest;
}

// Host work that the GPU does not hide. Launching is asynchronous and costs only where the
// host is slower than the kernels; scheduling is hidden when the engine overlaps it.
double SpeedOfLight::host_gap(const Slowest& slowest, double gpu) const {
  const catalog::Engine& engine = spec_.engine;
  const double schedule =
      engine.step_overhead.in(unit::sec) +
      engine.sequence_overhead.in(unit::sec) * static_cast<double>(slowest.sequences);
  const double launch = captured(slowest.busiest_tokens)
                            ? 0
                            : kernels_ * spec_.calibration.eager_launch.in(unit::sec);
  const double gap = spec_.calibration.step_gap.in(unit::sec);
  if (engine.overlap_scheduling) return gap + std::max(0.0, schedule + launch - gpu);
  return gap + schedule + std::max(0.0, launch - gpu);
}

Part SpeedOfLight::whole(const Slowest& slowest) const {
  Part part = local(slowest.work, slowest.head);
  part.add(experts_.at(slowest.all_tokens, [this](double n) { return experts_part(n); }));
  if (drafts() && slowest.all_drafts > 0)
    part.add(
        draft_experts_.at(slowest.all_drafts, [this](double n) { return draft_experts_part(n); }));
  for (const ExchangeTerm& term : exchanges_) {
    const std::int64_t most = term.draft ? slowest.busiest_drafts : slowest.busiest_tokens;
    const std::int64_t all = term.draft ? slowest.all_drafts : slowest.all_tokens;
    if (most == 0) continue;
    const double busy =
        std::max(term.out * static_cast<double>(most), term.in * static_cast<double>(all));
    part.communication += term.times * (term.floor + busy);
  }
  part.overhead += host_gap(slowest, part.total());
  return part;
}

Load SpeedOfLight::load(const Slowest& slowest) const {
  Load load = load_of(slowest.work);
  load.tokens = static_cast<double>(rows_of(slowest.work));
  load.drafts = static_cast<double>(draft_rows_of(slowest.work));
  load.head = std::ceil(static_cast<double>(slowest.head) / pp_);
  load.all_tokens = static_cast<double>(slowest.all_tokens);
  load.all_drafts = static_cast<double>(slowest.all_drafts);
  load.busiest_tokens = static_cast<double>(slowest.busiest_tokens);
  load.busiest_drafts = static_cast<double>(slowest.busiest_drafts);
  return load;
}

std::vector<OperatorCost> SpeedOfLight::explain(std::span<const RankWork> ranks) const {
  const Slowest slowest = find_slowest(ranks);
  const Load load = this->load(slowest);
  std::vector<OperatorCost> list;
  double gpu = 0;
  for (const Row& row : rows_) {
    if (!amount(row, load).any()) continue;
    const Operator op = evaluate(row, load);
    const Price price = pricer_.price(row, op);
    const double times = passes(row, static_cast<double>(slowest.head));
    const Seconds total = times * op.count * (price.busy + price.floor);
    gpu += total.in(unit::sec);
    list.push_back({.op = op,
                    .speed_of_light = price.speed_of_light,
                    .utilisation = price.busy > Seconds{} ? price.speed_of_light / price.busy : 1,
                    .passes = static_cast<int>(times),
                    .total = total,
                    .origin = price.entry->origin,
                    .source = price.entry->source});
  }
  OperatorCost overhead;
  overhead.op.name = "step_overhead";
  overhead.op.kind = OperatorKind::elementwise;
  overhead.total = host_gap(slowest, gpu) * unit::sec;
  overhead.source = "host work of engine " + spec_.engine.name + " that the GPU does not hide";
  list.push_back(overhead);
  return list;
}

}  // namespace

std::unique_ptr<StepModel> speed_of_light(const StepModelSpec& spec) {
  return std::make_unique<SpeedOfLight>(spec);
}

std::array<double, origins> origin_shares(const StepModel& model, std::span<const RankWork> ranks) {
  std::array<double, origins> shares{};
  double sum = 0;
  for (const OperatorCost& row : model.explain(ranks)) {
    const double total = row.total.in(unit::sec);
    const double ideal =
        std::min(total, (row.passes * row.op.count * row.speed_of_light).in(unit::sec));
    shares[static_cast<std::size_t>(Origin::datasheet)] += ideal;
    shares[static_cast<std::size_t>(row.origin)] += total - ideal;
    sum += total;
  }
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace racktwin::cost
