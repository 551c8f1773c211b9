// What a run found. Plain values: a report formats them and computes nothing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/origin.hpp"
#include "base/units.hpp"
#include "cost/step_model.hpp"
#include "serve/spec.hpp"
#include "sim/metrics.hpp"
#include "sim/record.hpp"
#include "workload/trace.hpp"

namespace racktwin::sim {

// Where a pool's GPU time went; parts of replicas * simulated time, sums to 1.
struct TimeSplit {
  double compute = 0, memory = 0, communication = 0, overhead = 0, idle = 0;
};

struct PoolResult {
  std::string name;
  serve::Role role = serve::Role::mixed;
  int replicas = 0, gpus = 0;  // gpus in all
  cost::Parallelism parallelism;
  std::string engine;
  cost::MemoryPlan memory;
  std::int64_t kv_blocks = 0;  // per replica
  int block_tokens = 0;
  TimeSplit time;
  std::int64_t steps = 0, mixed_steps = 0, preemptions = 0, restarts = 0;
  double batch_mean = 0;  // sequences per step
  double tokens_per_step = 0;
  double kv_used_mean = 0, kv_used_peak = 0;  // part of the cache
  std::int64_t queue_peak = 0;
  double queue_mean = 0;
  std::int64_t prompt_tokens = 0, reused_tokens = 0;   // of prompts: all; found in cache
  std::map<std::string, std::int64_t> reused_by_tier;  // "hbm", "host", "nvme", "remote"
  std::array<double, origins> time_by_origin{};        // of busy time
  std::vector<cost::OperatorCost> typical_step;        // a step of mean size, operator by operator
  std::optional<double> reuse() const {                // part of the prompts found in cache
    if (prompt_tokens == 0) return std::nullopt;
    return double(reused_tokens) / double(prompt_tokens);
  }
  // The mean over its steps of a part of `time`, e.g. per_step(time.memory, result.simulated).
  Seconds per_step(double part, Seconds simulated) const {
    return steps ? simulated * (part * replicas / double(steps)) : Seconds{};
  }
};

struct Transfers {  // prefill to decode
  std::int64_t count = 0;
  Bytes bytes;
  Distribution duration, wait_for_slot;  // ns
  double inside_domain = 0;              // part of the transfers that stayed in one NVLink domain
};

// One sample per interval; rates are over the interval, gauges at its end. NaN where an
// interval has nothing to say (a percentile of no request).
struct Series {
  Seconds interval;
  std::vector<double> time_s, arrivals, completions, output_tokens_per_s, input_tokens_per_s,
      concurrency, ttft_p50_ms, ttft_p99_ms, tpot_p50_ms;
  struct PoolSeries {
    std::vector<double> running, waiting, kv_used, reuse, busy;  // reuse, busy: over the interval
  };
  std::vector<PoolSeries> pools;  // as RunResult::pools
};

struct RackUse {
  int rack = 0;
  std::string label;  // names of its pools, joined by "+"; "idle" without one
  int gpus_used = 0, gpus = 0;
  double utilisation = 0;               // busy GPU time over GPU time
  std::vector<double> gpu_utilisation;  // one per GPU of the rack
};

// What the run waited for, in order of weight.
struct Bottleneck {
  std::string sentence;  // "decode pool: HBM bandwidth; 62 % of its busy time is ..."
  std::string pool, limit;
};

struct RunResult {
  std::string scenario_name, scenario_yaml;
  std::string version;
  std::uint64_t seed = 0, digest = 0;
  bool partial = false;  // interrupted
  std::string partial_reason;
  Seconds simulated;
  std::uint64_t events = 0, steps = 0;
  int racks = 0, gpus = 0, gpus_used = 0;
  std::string model, system, gpu;
  std::int64_t model_parameters = 0, model_active = 0;
  Metrics metrics;
  std::vector<PoolResult> pools;
  Transfers transfers;
  Series series;
  std::vector<RackUse> rack_use;
  std::vector<Record> records;  // empty unless asked for
  std::vector<Slice> slices;
  std::optional<workload::TraceInfo> trace;
  std::array<double, origins> time_by_origin{};  // of all busy GPU time
  Bottleneck bottleneck;
  std::vector<std::string> warnings;  // never silent: fallbacks, stalls, unmodelled parts
};

}  // namespace racktwin::sim
