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
    if (index < known_.size() && known_[index].total >= 0) return known_[index].part;
    return find(index, fill);
  }
  template <class Fill>
  double total(std::int64_t n, const Fill& fill) {
    const auto index = static_cast<std::size_t>(n);
    if (index < known_.size() && known_[index].total >= 0) return known_[index].total;
    return find(index, fill).total();
  }

 private:
  struct Known {
    Part part;
    double total = -1;
  };
  static constexpr std::size_t most = std::size_t{1} << 20;  // 40 MiB; beyond: not kept

  template <class Fill>
  const Part& find(std::size_t index, const Fill& fill) {
    if (index >= most) {
      beyond_ = fill(static_cast<double>(index));
      return beyond_;
    }
    if (index >= known_.size()) known_.resize(std::min(most, std::max(index + 1, 2 * index)));
    known_[index].part = fill(static_cast<double>(index));
    known_[index].total = known_[index].part.total();
    return known_[index].part;
  }

  std::vector<Known> known_;
  Part beyond_;
};

// Equal attention kernels as rates: seconds per token, per pair and per sequence.
struct AttentionTerm {
  double times = 0, floor = 0;
  Linear compute, memory;
  bool prefill = false, bounded = false, per_sequence = false;
};

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
  double attention_seconds(const AttentionTerm& term, const RankWork& work, Part* part) const;
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
  std::int64_t group_;                // tokens that a sequence brings to a decode step
  std::vector<std::int64_t> padded_;  // [sequences], up to the largest graph
  double kernels_ = 0;                // launched per step
  std::vector<AttentionTerm> attention_;
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
  AttentionTerm term{
      .times = times,
      .floor = floor,
      .compute = {row.flops.token * flop, row.flops.pair * flop, row.flops.sequence * flop},
      .memory = {(row.activations.token + row.kv.token) * byte,
                 (row.activations.pair + row.kv.pair) * byte,
                 (row.activations.sequence + row.kv.sequence) * byte},
      .prefill = !decode,
      .bounded = row.bounded,
      .per_sequence = row.driver == Driver::draft_decode};
  const auto equal = [](const Linear& a, const Linear& b) {
    return a.token == b.token && a.pair == b.pair && a.sequence == b.sequence;
  };
  for (AttentionTerm& known : attention_) {
    if (known.prefill == term.prefill && known.bounded == term.bounded &&
        known.per_sequence == term.per_sequence && known.floor == term.floor &&
        equal(known.compute, term.compute) && equal(known.memory, term.memory)) {
      known.times += term.times;
      return;
    }
  }
  attention_.push_back(term);
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
}

std::int64_t SpeedOfLight::rows_of(const RankWork& micro) const {
  const std::int64_t tokens = micro.prefill_tokens + micro.decode_tokens;
  const auto sequences = static_cast<std::size_t>((micro.decode_tokens + group_ - 1) / group_);
  if (sequences >= padded_.size()) return tokens;
  return std::max(tokens, padded_[sequences] * group_);
}

std::int64_t SpeedOfLight::draft_rows_of(const RankWork& micro) const {
  const auto sequences = static_cast<std::size_t>(micro.decode_sequences);
  return sequences < padded_.size() ? padded_[sequences] : micro.decode_sequences;
}

bool SpeedOfLight::captured(std::int64_t tokens) const {
  return tokens < static_cast<std::int64_t>(padded_.size()) * group_;
}

double SpeedOfLight::attention_seconds(const AttentionTerm& term, const RankWork& work,
                                       Part* part) const {
  const bool prefill = term.prefill;
  const auto tokens = static_cast<double>(prefill             ? work.prefill_tokens
                                          : term.per_sequence ? work.decode_sequences
                                                              : work.decode_tokens);
  const auto sequences =
      static_cast<double>(prefill ? work.prefill_sequences : work.decode_sequences);
  const auto pairs = static_cast<double>(
      prefill ? (term.bounded ? work.prefill_pairs_windowed : work.prefill_pairs)
              : (term.bounded ? work.decode_context_windowed : work.decode_context));
  if (tokens + pairs + sequences == 0) return 0;
  const double compute = term.compute.at(tokens, pairs, sequences);
  const double memory = term.memory.at(tokens, pairs, sequences);
  const double busy = term.times * std::max(compute, memory);
  const double floor = term.times * term.floor;
  if (part != nullptr) {
    (compute > memory ? part->compute : part->memory) += busy;
    part->overhead += floor;
  }
  return busy + floor;
}

double SpeedOfLight::local_total(const RankWork& micro, std::int64_t head) const {
  double sum = tokens_.total(rows_of(micro), [this](double n) { return tokens_part(n); }) +
               head_.total(head, [this](double n) { return head_part(n); });
  if (drafts())
    sum += drafts_.total(draft_rows_of(micro), [this](double n) { return drafts_part(n); });
  for (const AttentionTerm& term : attention_) sum += attention_seconds(term, micro, nullptr);
  return sum;
}

Part SpeedOfLight::local(const RankWork& micro, std::int64_t head) const {
  Part part = tokens_.at(rows_of(micro), [this](double n) { return tokens_part(n); });
  part.add(head_.at(head, [this](double n) { return head_part(n); }));
  if (drafts())
    part.add(drafts_.at(draft_rows_of(micro), [this](double n) { return drafts_part(n); }));
  for (const AttentionTerm& term : attention_) attention_seconds(term, micro, &part);
  return part;
}

SpeedOfLight::Slowest SpeedOfLight::find_slowest(std::span<const RankWork> ranks) const {
  RACKTWIN_CHECK(ranks.size() == static_cast<std::size_t>(spec_.parallelism.dp));
  const int pp = spec_.parallelism.pp;
  Slowest slowest;
  for (const RankWork& rank : ranks) {
    const std::int64_t tokens = rank.prefill_tokens + rank.decode_tokens;
    const std::int64_t head = rank.prefill_sequences + rank.decode_tokens;
    slowest.all_tokens += tokens;
    slowest.all_drafts += rank.decode_sequences;
    slowest.busiest_tokens = std::max(slowest.busiest_tokens, tokens);
    slowest.busiest_drafts = std::max(slowest.busiest_drafts, rank.decode_sequences);
    slowest.sequences = std::max(slowest.sequences, rank.prefill_sequences + rank.decode_sequences);
    const RankWork micro = pp == 1 ? rank : micro_batch(rank, pp);
    const double local = local_total(micro, head);
    if (local <= slowest.local) continue;
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
