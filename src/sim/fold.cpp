#include "sim/fold.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace racktwin::sim {
namespace {

Distribution of(const Histogram& h) {
  return {.histogram = h,
          .mean = h.mean(),
          .p50 = h.percentile(0.5),
          .p90 = h.percentile(0.9),
          .p95 = h.percentile(0.95),
          .p99 = h.percentile(0.99),
          .max = static_cast<double>(h.max())};
}

PoolResult describe(const serve::Pool& pool, const PoolParts& parts,
                    const serve::Cluster::PoolSetup& setup) {
  PoolResult result{.name = pool.name,
                    .role = pool.role,
                    .replicas = pool.replicas,
                    .gpus = pool.replicas * pool.parallelism.gpus(),
                    .parallelism = pool.parallelism,
                    .engine = parts.engine.name,
                    .memory = parts.memory,
                    .kv_blocks = setup.rules.blocks * pool.parallelism.dp,
                    .block_tokens = setup.rules.block_tokens};
  return result;
}

// Adds what one replica did; sequences and output tokens are totals until finish_pool().
void add_replica(const serve::Replica& replica, int block_tokens, PoolResult& pool) {
  const serve::StepStats& s = replica.stats();
  pool.time.compute += s.compute.in(unit::sec);
  pool.time.memory += s.memory.in(unit::sec);
  pool.time.communication += s.communication.in(unit::sec);
  pool.time.overhead += s.overhead.in(unit::sec);
  pool.steps += s.steps;
  pool.mixed_steps += s.mixed_steps;
  pool.preemptions += s.preemptions;
  pool.batch_mean += static_cast<double>(s.sequences);
  pool.tokens_per_step += static_cast<double>(s.prefill_tokens + s.output_tokens);
  pool.prompt_tokens += s.prompt_tokens;
  pool.reused_tokens += s.reused_tokens;
  pool.reused_by_tier["hbm"] += s.reused_tokens - s.reused_lower;
  for (int t = 0; t < serve::tiers; ++t) {
    const std::int64_t tokens = replica.tiers().blocks_read(t) * block_tokens;
    if (tokens > 0)
      pool.reused_by_tier[std::string(serve::tier_names[static_cast<std::size_t>(t)])] += tokens;
  }
}

void finish_pool(const Collector::PoolGauges& gauges, Seconds simulated, PoolResult& pool) {
  const double whole = simulated.in(unit::sec)*pool.replicas;
  TimeSplit& t = pool.time;
  for (double* part : {&t.compute, &t.memory, &t.communication, &t.overhead}) *part /= whole;
  t.idle = std::max(0.0, 1 - t.compute - t.memory - t.communication - t.overhead);
  if (pool.steps > 0) {
    pool.batch_mean /= static_cast<double>(pool.steps);
    pool.tokens_per_step /= static_cast<double>(pool.steps);
  }
  if (gauges.samples > 0) {
    pool.kv_used_mean = gauges.kv_sum / static_cast<double>(gauges.samples);
    pool.queue_mean = gauges.queue_sum / static_cast<double>(gauges.samples);
  }
  pool.kv_used_peak = gauges.kv_peak;
  pool.queue_peak = gauges.queue_peak;
}

void fold_origins(const Parts& parts, const serve::Cluster& cluster, RunResult& result) {
  double busy_all = 0;
  std::vector<bool> done(result.pools.size(), false);
  for (std::size_t i = 0; i < cluster.replicas(); ++i) {
    const std::size_t p = cluster.pool_of(i);
    PoolResult& pool = result.pools[p];
    if (done[p] || cluster.replica(i).stats().steps == 0) continue;
    done[p] = true;
    const std::vector<cost::RankWork> work = cluster.replica(i).typical_work();
    pool.typical_step = parts.pools[p].model->explain(work);
    pool.time_by_origin = cost::origin_shares(*parts.pools[p].model, work);
    const double busy = (1 - pool.time.idle) * pool.gpus;
    busy_all += busy;
    for (std::size_t o = 0; o < origins; ++o)
      result.time_by_origin[o] += pool.time_by_origin[o] * busy;
  }
  if (busy_all > 0)
    for (double& share : result.time_by_origin) share /= busy_all;
}

void fold_racks(const Parts& parts, const serve::Cluster& cluster, Seconds simulated,
                const Scenario& scenario, RunResult& result) {
  const int per_rack = parts.system.gpus_per_rack;
  std::vector<std::vector<bool>> pools_here(static_cast<std::size_t>(scenario.racks),
                                            std::vector<bool>(result.pools.size(), false));
  for (int r = 0; r < scenario.racks; ++r)
    result.rack_use.push_back(
        {.rack = r,
         .gpus = per_rack,
         .gpu_utilisation = std::vector<double>(static_cast<std::size_t>(per_rack), 0)});
  for (std::size_t i = 0; i < cluster.replicas(); ++i) {
    const std::size_t p = cluster.pool_of(i);
    const double busy =
        static_cast<double>(cluster.replica(i).stats().busy_ns) / 1e9 / simulated.in(unit::sec);
    const int gpus = result.pools[p].parallelism.gpus();
    for (int g = 0; g < gpus; ++g) {
      const int gpu = static_cast<int>(cluster.first_gpu(i).index) + g;
      RackUse& rack = result.rack_use[static_cast<std::size_t>(gpu / per_rack)];
      rack.gpu_utilisation[static_cast<std::size_t>(gpu % per_rack)] = std::min(busy, 1.0);
      ++rack.gpus_used;
      pools_here[static_cast<std::size_t>(gpu / per_rack)][p] = true;
    }
  }
  for (RackUse& rack : result.rack_use) {
    double sum = 0;
    for (const double u : rack.gpu_utilisation) sum += u;
    rack.utilisation = sum / per_rack;
    for (std::size_t p = 0; p < result.pools.size(); ++p)
      if (pools_here[static_cast<std::size_t>(rack.rack)][p])
        rack.label += (rack.label.empty() ? "" : "+") + result.pools[p].name;
    if (rack.label.empty()) rack.label = "idle";
  }
}

void fold_slices(const serve::Cluster& cluster, const Collector& collector, RunResult& result) {
  result.slices = collector.slices();
  for (std::size_t i = 0; i < cluster.replicas(); ++i) {
    const std::string track =
        fmt::format("{}/replica {}", result.pools[cluster.pool_of(i)].name, i);
    for (const serve::StepTrace& t : cluster.replica(i).stats().traces)
      result.slices.push_back({track,
                               t.prefill_tokens > 0 ? "prefill step" : "decode step",
                               t.start_ns,
                               t.end_ns - t.start_ns,
                               {{"sequences", static_cast<double>(t.sequences)},
                                {"prompt tokens", static_cast<double>(t.prefill_tokens)}}});
  }
}

}  // namespace

void fold_cluster(const Scenario& scenario, const Parts& parts, const serve::Cluster& cluster,
                  const Collector& collector, Seconds simulated, RunResult& result) {
  const auto& pools = scenario.deployment.pools;
  for (std::size_t p = 0; p < pools.size(); ++p)
    result.pools.push_back(describe(pools[p], parts.pools[p], parts.cluster.pools[p]));
  for (std::size_t i = 0; i < cluster.replicas(); ++i) {
    PoolResult& pool = result.pools[cluster.pool_of(i)];
    add_replica(cluster.replica(i), pool.block_tokens, pool);
  }
  for (std::size_t p = 0; p < pools.size(); ++p) {
    const auto& gauges = collector.gauges();
    finish_pool(p < gauges.size() ? gauges[p] : Collector::PoolGauges{}, simulated,
                result.pools[p]);
    result.steps += static_cast<std::uint64_t>(result.pools[p].steps);
    result.gpus_used += result.pools[p].gpus;
  }
  fold_origins(parts, cluster, result);
  fold_racks(parts, cluster, simulated, scenario, result);
  fold_slices(cluster, collector, result);
  const serve::TransferStats& t = cluster.transfers();
  result.transfers = {
      .count = t.count,
      .bytes = t.bytes,
      .duration = of(t.duration),
      .wait_for_slot = of(t.wait_for_slot),
      .inside_domain =
          t.count > 0 ? static_cast<double>(t.inside_domain) / static_cast<double>(t.count) : 0};
}

Bottleneck find_bottleneck(const RunResult& result) {
  if (result.pools.empty() || result.metrics.counts.completed == 0)
    return {"nothing was completed", "", "nothing"};
  const auto busy = [](const PoolResult& p) { return 1 - p.time.idle; };
  const auto queue = [](const PoolResult& p) { return p.queue_mean / p.replicas; };
  // A pool is short of something when requests wait for it. Being busy says little: a decode
  // replica steps as long as one sequence runs; only prompts come one after another.
  const PoolResult* pool = &result.pools.front();
  for (const PoolResult& p : result.pools)
    if (queue(p) > queue(*pool)) pool = &p;
  const bool queues = queue(*pool) >= 1;
  if (!queues)
    for (const PoolResult& p : result.pools)
      if (busy(p) > busy(*pool)) pool = &p;

  const TimeSplit& t = pool->time;
  const std::pair<double, std::string_view> parts[] = {{t.memory, "HBM bandwidth"},
                                                       {t.compute, "arithmetic"},
                                                       {t.communication, "communication"},
                                                       {t.overhead, "host and launch overhead"}};
  const auto& largest =
      *std::max_element(std::begin(parts), std::end(parts),
                        [](const auto& a, const auto& b) { return a.first < b.first; });
  const double share = busy(*pool) > 0 ? largest.first / busy(*pool) : 0;
  Bottleneck b{.pool = pool->name, .limit = std::string(largest.second)};
  const std::string steps =
      fmt::format("{} is {:.0f} % of its step time", largest.second, 100 * share);
  if (queues && pool->kv_used_peak > 0.97 && pool->role != serve::Role::prefill) {
    b.limit = "KV cache";
    b.sentence = fmt::format(
        "pool \"{}\": its KV cache is full ({:.0f} % at the peak) and {:.0f} requests wait on "
        "average; {}",
        pool->name, 100 * pool->kv_used_peak, pool->queue_mean, steps);
  } else if (queues || (pool->role == serve::Role::prefill && busy(*pool) > 0.9)) {
    b.sentence = fmt::format(
        "pool \"{}\": busy {:.0f} % of the time with {:.1f} requests waiting on average; {}",
        pool->name, 100 * busy(*pool), pool->queue_mean, steps);
  } else {
    b.limit = "load";
    b.sentence = fmt::format(
        "the offered load: no pool keeps requests waiting; \"{}\" is the busiest ({:.0f} % of the "
        "time), where {}",
        pool->name, 100 * busy(*pool), steps);
  }
  return b;
}

}  // namespace racktwin::sim
