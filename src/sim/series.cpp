// The time series of a run: what replicas counted per interval is added, and a long series is
// thinned to what a picture can show.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/collector.hpp"

namespace racktwin::sim {
namespace {

// Means of `group` neighbours; values that say nothing are left out of the mean.
void merge_means(std::vector<double>& values, std::size_t group) {
  std::vector<double> merged;
  for (std::size_t i = 0; i < values.size(); i += group) {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t j = i; j < std::min(i + group, values.size()); ++j) {
      if (std::isnan(values[j])) continue;
      sum += values[j];
      ++count;
    }
    merged.push_back(count > 0 ? sum / static_cast<double>(count)
                               : std::numeric_limits<double>::quiet_NaN());
  }
  values = std::move(merged);
}

void merge_last(std::vector<double>& values, std::size_t group) {
  std::vector<double> merged;
  for (std::size_t i = 0; i < values.size(); i += group)
    merged.push_back(values[std::min(i + group, values.size()) - 1]);
  values = std::move(merged);
}

}  // namespace

Series Collector::series(const serve::Cluster& cluster, std::size_t most) const {
  Series s = series_;
  const std::size_t samples = s.time_s.size();
  const double seconds = s.interval.in(unit::sec);
  s.output_tokens_per_s.assign(samples, 0);
  std::vector<double> replicas(s.pools.size(), 0);
  for (Series::PoolSeries& pool : s.pools) pool.busy.assign(samples, 0);
  for (std::size_t i = 0; i < cluster.replicas(); ++i) {
    const serve::StepStats& stats = cluster.replica(i).stats();
    for (std::size_t k = 0; k < std::min(samples, stats.output_by_interval.size()); ++k)
      s.output_tokens_per_s[k] += static_cast<double>(stats.output_by_interval[k]) / seconds;
    const std::size_t p = cluster.pool_of(i);
    if (p >= s.pools.size()) continue;
    replicas[p] += 1;
    for (std::size_t k = 0; k < std::min(samples, stats.busy_by_interval.size()); ++k)
      s.pools[p].busy[k] += static_cast<double>(stats.busy_by_interval[k]) / 1e9 / seconds;
  }
  for (std::size_t p = 0; p < s.pools.size(); ++p)
    for (double& busy : s.pools[p].busy) busy /= replicas[p];

  const std::size_t group = (samples + most - 1) / std::max<std::size_t>(most, 1);
  if (group <= 1) return s;
  s.interval = s.interval * static_cast<double>(group);
  for (auto* means : {&s.arrivals, &s.completions, &s.output_tokens_per_s, &s.input_tokens_per_s,
                      &s.ttft_p50_ms, &s.ttft_p99_ms, &s.tpot_p50_ms})
    merge_means(*means, group);
  merge_last(s.time_s, group);
  merge_last(s.concurrency, group);
  for (Series::PoolSeries& pool : s.pools) {
    merge_means(pool.reuse, group);
    merge_means(pool.busy, group);
    merge_last(pool.running, group);
    merge_last(pool.waiting, group);
    merge_last(pool.kv_used, group);
  }
  return s;
}

}  // namespace racktwin::sim
