#include "sim/collector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.hpp"

namespace racktwin::sim {
namespace {

using serve::Active;
using serve::End;
using serve::never;

constexpr std::size_t sliced_requests = 200;  // in the time-line view

// Nearest rank; reorders `values`.
double percentile_or_nan(std::vector<double>& values, double part) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double rank = std::ceil(part * static_cast<double>(values.size()));
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(std::max(rank, 1.0)) - 1;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace

Collector::Collector(const Scenario& scenario, const des::Simulation& clock, OnEnd ended)
    : scenario_(scenario), clock_(clock), ended_(std::move(ended)) {
  warmup_ns_ = (Instant{} + scenario.warmup).ns();
  series_.interval = scenario.series_interval;
  for (const Slo& slo : scenario.slos)
    slos_.push_back({.name = slo.name,
                     .ttft = slo.ttft,
                     .tpot = slo.tpot,
                     .e2e = slo.e2e,
                     .attainment = slo.attainment});
}

void Collector::change_concurrency(Instant when, int by) {
  concurrency_area_ +=
      static_cast<double>(concurrency_) * static_cast<double>(when.ns() - concurrency_since_.ns());
  concurrency_since_ = when;
  concurrency_ += by;
  concurrency_peak_ = std::max(concurrency_peak_, concurrency_);
}

void Collector::arrived(Instant when, Instant seen) {
  if (!any_arrival_) {
    first_arrival_ = when;
    concurrency_since_ = seen;
    any_arrival_ = true;
  }
  last_arrival_ = when;
  ++counts_.arrived;
  ++arrivals_;
  change_concurrency(seen, 1);
  concurrency_area_ += static_cast<double>(seen.ns() - when.ns());
}

void Collector::ended(const Active& a, End end, std::string_view reason) {
  change_concurrency(clock_.now(), -1);
  // Order of ends at one instant is no result: the digest is a sum.
  digest_ += mix(
      mix(mix(a.id.index, static_cast<std::uint64_t>(a.scheduled)),
          mix(static_cast<std::uint64_t>(a.prefilled), static_cast<std::uint64_t>(a.transferred))),
      mix(static_cast<std::uint64_t>(a.first_token), static_cast<std::uint64_t>(a.last_token)));
  switch (end) {
    case End::completed:
      ++counts_.completed;
      ++completions_;
      input_in_interval_ += a.isl;
      last_end_ = clock_.now();
      break;
    case End::shed:
      ++counts_.shed;
      ++counts_.shed_reasons[std::string(reason)];
      break;
    case End::unfinished:
      ++counts_.unfinished;
      break;
  }
  judge(a, end);
  ended_(a.id);
}

void Collector::judge(const Active& a, End end) {
  bool good = false;
  const bool counted = a.arrival >= warmup_ns_;
  SloOutcome& slo = slos_[std::min<std::size_t>(a.slo_class, slos_.size() - 1)];
  if (end == End::completed) {
    RACKTWIN_CHECK(a.arrival <= a.scheduled && a.scheduled <= a.first_token &&
                   a.first_token <= a.last_token);
    const std::int64_t ttft = a.first_token - a.arrival, e2e = a.last_token - a.arrival;
    std::optional<std::int64_t> tpot;
    if (a.osl > 1) tpot = (a.last_token - a.first_token) / (a.osl - 1);
    const auto over = [](const std::optional<Seconds>& bound, std::int64_t ns) {
      return bound && static_cast<double>(ns) * unit::ns > *bound;
    };
    const bool late_ttft = over(slo.ttft, ttft), late_tpot = tpot && over(slo.tpot, *tpot),
               late_e2e = over(slo.e2e, e2e);
    good = !late_ttft && !late_tpot && !late_e2e;
    good_in_interval_ += good;
    if (scenario_.series_interval > Seconds{}) {
      ttft_in_interval_.push_back(static_cast<double>(ttft) / 1e6);
      if (tpot) tpot_in_interval_.push_back(static_cast<double>(*tpot) / 1e6);
    }
    if (counted) {
      ++counted_;
      input_tokens_ += a.isl;
      output_tokens_ += a.osl;
      ttft_.add(ttft);
      if (tpot) tpot_.add(*tpot);
      e2e_.add(e2e);
      queue_.add(a.scheduled - a.arrival);
      isl_.add(a.isl);
      osl_.add(a.osl);
      if (good) {
        ++good_;
        good_tokens_ += a.osl;
      }
      slo.missed_ttft += late_ttft;
      slo.missed_tpot += late_tpot;
      slo.missed_e2e += late_e2e;
    }
    if (slices_.size() < 6 * sliced_requests && a.id.index < sliced_requests) keep_slices(a);
  }
  if (counted && !(end == End::unfinished && interrupted_)) {
    ++slo.requests;
    slo.good += good;
    slo.not_served += end != End::completed;
  }
  if (scenario_.records) keep(a, end, good);
}

void Collector::keep(const Active& a, End end, bool good) {
  const auto place = [](std::uint32_t replica) {
    return replica == serve::no_replica ? -1 : static_cast<std::int32_t>(replica);
  };
  const bool handed_over = a.prefill_replica != serve::no_replica;
  records_.push_back({.id = a.id.index,
                      .isl = a.isl,
                      .osl = a.osl,
                      .reused_tokens = a.reused,
                      .arrival_ns = a.arrival,
                      .scheduled_ns = a.scheduled,
                      .prefilled_ns = a.prefilled,
                      .first_token_ns = a.first_token,
                      .last_token_ns = end == End::completed ? a.last_token : never,
                      .prefill_replica = place(handed_over ? a.prefill_replica : a.replica),
                      .decode_replica = place(a.replica),
                      .preemptions = a.preemptions,
                      .end = static_cast<std::uint8_t>(end),
                      .slo_class = a.slo_class,
                      .good = good});
}

void Collector::keep_slices(const Active& a) {
  const std::string track = fmt::format("requests/{}", a.id.index);
  const auto slice = [&](std::string_view name, std::int64_t from, std::int64_t to) {
    if (from == never || to == never || to < from) return;
    slices_.push_back({track, std::string(name), from, to - from, {}});
  };
  slices_.push_back({track,
                     "request",
                     a.arrival,
                     a.last_token - a.arrival,
                     {{"isl", a.isl}, {"osl", a.osl}, {"reused tokens", a.reused}}});
  slice("queue", a.arrival, a.scheduled);
  if (a.preemptions == 0) slice("prefill", a.scheduled, a.prefilled);
  slice("wait for decode slot", a.prefilled, a.slot);
  slice("KV transfer", a.slot, a.transferred);
  if (a.transferred != never) slice("first decode step", a.transferred, a.first_token);
  slice("decode", a.first_token, a.last_token);
}

void Collector::sample(Instant when, const serve::Cluster& cluster) {
  const double seconds = series_.interval.in(unit::sec);
  series_.time_s.push_back(since_start(when).in(unit::sec));
  series_.arrivals.push_back(static_cast<double>(arrivals_) / seconds);
  series_.completions.push_back(static_cast<double>(completions_) / seconds);
  series_.input_tokens_per_s.push_back(static_cast<double>(input_in_interval_) / seconds);
  series_.concurrency.push_back(static_cast<double>(concurrency_));
  series_.ttft_p50_ms.push_back(percentile_or_nan(ttft_in_interval_, 0.5));
  series_.ttft_p99_ms.push_back(percentile_or_nan(ttft_in_interval_, 0.99));
  series_.tpot_p50_ms.push_back(percentile_or_nan(tpot_in_interval_, 0.5));
  completed_by_interval_.push_back(completions_);
  good_by_interval_.push_back(good_in_interval_);
  good_in_interval_ = 0;
  arrivals_ = completions_ = input_in_interval_ = 0;
  ttft_in_interval_.clear();
  tpot_in_interval_.clear();

  struct Sum {
    double running = 0, used = 0, total = 0;
    std::int64_t waiting = 0, prompt = 0, reused = 0;
  };
  std::vector<Sum> sums(scenario_.deployment.pools.size());
  for (std::size_t i = 0; i < cluster.replicas(); ++i) {
    const serve::Replica& replica = cluster.replica(i);
    Sum& sum = sums[cluster.pool_of(i)];
    sum.running += replica.running();
    sum.waiting += replica.waiting();
    sum.used += static_cast<double>(replica.blocks_used());
    sum.total += static_cast<double>(replica.blocks_total());
    sum.prompt += replica.stats().prompt_tokens;
    sum.reused += replica.stats().reused_tokens;
  }
  gauges_.resize(sums.size());
  series_.pools.resize(sums.size());
  prompt_before_.resize(sums.size());
  reused_before_.resize(sums.size());
  for (std::size_t p = 0; p < sums.size(); ++p) {
    Sum& sum = sums[p];
    if (scenario_.deployment.pools[p].role == serve::Role::decode)
      sum.waiting += cluster.waiting_for_slot();
    const double used = sum.used / sum.total;
    const std::int64_t prompt = sum.prompt - prompt_before_[p];
    const std::int64_t reused = sum.reused - reused_before_[p];
    prompt_before_[p] = sum.prompt;
    reused_before_[p] = sum.reused;
    Series::PoolSeries& row = series_.pools[p];
    row.running.push_back(sum.running);
    row.waiting.push_back(static_cast<double>(sum.waiting));
    row.kv_used.push_back(used);
    row.reuse.push_back(prompt > 0 ? static_cast<double>(reused) / static_cast<double>(prompt)
                                   : std::numeric_limits<double>::quiet_NaN());
    PoolGauges& gauge = gauges_[p];
    gauge.kv_sum += used;
    gauge.kv_peak = std::max(gauge.kv_peak, used);
    gauge.queue_sum += static_cast<double>(sum.waiting);
    gauge.queue_peak = std::max(gauge.queue_peak, sum.waiting);
    ++gauge.samples;
  }
}

Distribution Collector::distribution(const Histogram& histogram) {
  return {.histogram = histogram,
          .mean = histogram.mean(),
          .p50 = histogram.percentile(0.5),
          .p90 = histogram.percentile(0.9),
          .p95 = histogram.percentile(0.95),
          .p99 = histogram.percentile(0.99),
          .max = static_cast<double>(histogram.max())};
}

Distribution Collector::distribution(const Moments& moments) {
  Distribution result = distribution(moments.histogram);
  if (moments.histogram.count() > 0) {
    const double mean = moments.histogram.mean();
    const double variance =
        moments.squares / static_cast<double>(moments.histogram.count()) - mean * mean;
    result.deviation = std::sqrt(std::max(variance, 0.0));
  }
  return result;
}

Metrics Collector::metrics(int gpus_used, const serve::Cluster& cluster) {
  Metrics m;
  m.counts = counts_;
  m.input_tokens = input_tokens_;
  m.output_tokens = output_tokens_;
  const Instant start = std::max(first_arrival_, Instant::at_ns(warmup_ns_));
  if (last_end_ > start) m.duration = last_end_ - start;
  m.ttft = distribution(ttft_);
  m.tpot = distribution(tpot_);
  m.e2e = distribution(e2e_);
  m.queue_time = distribution(queue_);
  m.isl = distribution(isl_);
  m.osl = distribution(osl_);
  Histogram itl, chunk;
  for (std::size_t i = 0; i < cluster.replicas(); ++i) {
    itl.merge(cluster.replica(i).stats().itl);
    chunk.merge(cluster.replica(i).stats().chunk);
  }
  m.itl = distribution(itl);
  m.chunk_latency = distribution(chunk);
  if (m.duration > Seconds{}) {
    const auto rate = [&](std::int64_t count) {
      return static_cast<double>(count) / m.duration.in(unit::sec)*unit::per_second;
    };
    const auto tokens = [&](std::int64_t count) {
      return static_cast<double>(count) * unit::tok / m.duration;
    };
    m.request_throughput = rate(counted_);
    m.goodput = rate(good_);
    m.output_throughput = tokens(output_tokens_);
    m.input_throughput = tokens(input_tokens_);
    m.total_throughput = m.input_throughput + m.output_throughput;
    m.goodput_tokens = tokens(good_tokens_);
    m.output_per_gpu = m.output_throughput / gpus_used;
    m.total_per_gpu = m.total_throughput / gpus_used;
    // From the first arrival to the last end of any kind: then nobody is left.
    m.concurrency_mean =
        concurrency_area_ /
        std::max<double>(1, static_cast<double>(concurrency_since_.ns() - first_arrival_.ns()));
  }
  m.concurrency_peak = concurrency_peak_;
  m.steady = steady(gpus_used, cluster);
  m.slos = slos_;
  if (scenario_.records) exact(m);
  return m;
}

// Requests come by the clock, not because others have ended.
bool Collector::open_loop() const {
  const auto* load = std::get_if<workload::Load>(&scenario_.load);
  if (load == nullptr) return true;
  return std::holds_alternative<workload::OpenLoop>(*load) ||
         std::holds_alternative<workload::Sessions>(*load);
}

// In whole intervals, since that is how tokens are counted.
Metrics::Steady Collector::steady(int gpus_used, const serve::Cluster& cluster) const {
  const double interval = series_.interval.in(unit::sec);
  const auto index = [&](Instant t) {
    return static_cast<std::size_t>(since_start(t).in(unit::sec) / interval);
  };
  const std::size_t first = index(std::max(first_arrival_, Instant::at_ns(warmup_ns_)));
  // Requests that all come at once are a burst, whatever they were read from.
  const bool flows = open_loop() && index(last_arrival_) > first;
  const std::size_t last = std::max(first, index(flows ? last_arrival_ : last_end_)) + 1;
  std::int64_t tokens = 0, completed = 0, good = 0;
  for (std::size_t i = 0; i < cluster.replicas(); ++i) {
    const auto& counts = cluster.replica(i).stats().output_by_interval;
    for (std::size_t k = first; k < std::min(last, counts.size()); ++k) tokens += counts[k];
  }
  for (std::size_t k = first; k < std::min(last, completed_by_interval_.size()); ++k) {
    completed += completed_by_interval_[k];
    good += good_by_interval_[k];
  }
  const Seconds length = series_.interval * static_cast<double>(last - first);
  const double seconds = length.in(unit::sec);
  Metrics::Steady s{.from = series_.interval * static_cast<double>(first)};
  s.to = s.from + length;
  s.output = static_cast<double>(tokens) * unit::tok / length;
  s.output_per_gpu = s.output / gpus_used;
  s.completed = static_cast<double>(completed) / seconds * unit::per_second;
  s.goodput = static_cast<double>(good) / seconds * unit::per_second;
  return s;
}

// Percentiles of the values themselves, where all were kept.
void Collector::exact(Metrics& m) const {
  std::vector<double> ttft, tpot, e2e, queue;
  for (const Record& r : records_) {
    if (r.end != 0 || r.arrival_ns < warmup_ns_) continue;
    ttft.push_back(r.ttft()->in(unit::ns));
    e2e.push_back(r.e2e()->in(unit::ns));
    queue.push_back(static_cast<double>(r.scheduled_ns - r.arrival_ns));
    if (const auto value = r.tpot()) tpot.push_back(value->in(unit::ns));
  }
  const auto fill = [](Distribution& d, const std::vector<double>& values) {
    d.p50 = exact_percentile(values, 0.5);
    d.p90 = exact_percentile(values, 0.9);
    d.p95 = exact_percentile(values, 0.95);
    d.p99 = exact_percentile(values, 0.99);
  };
  fill(m.ttft, ttft);
  fill(m.tpot, tpot);
  fill(m.e2e, e2e);
  fill(m.queue_time, queue);
}

}  // namespace racktwin::sim
