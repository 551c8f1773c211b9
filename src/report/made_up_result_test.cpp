#include "report/made_up_result.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.hpp"

namespace racktwin::report {
namespace {

// Percentiles, mean and all else from what the histogram holds.
sim::Distribution made_up_distribution(Histogram histogram) {
  sim::Distribution distribution;
  distribution.histogram = std::move(histogram);
  const Histogram& all = distribution.histogram;
  distribution.mean = all.mean();
  distribution.p50 = all.percentile(0.5);
  distribution.p90 = all.percentile(0.9);
  distribution.p95 = all.percentile(0.95);
  distribution.p99 = all.percentile(0.99);
  distribution.max = static_cast<double>(all.max());
  return distribution;
}

sim::Distribution made_up_latency(const char* stream, double median_ms, double spread, int count) {
  Rng rng(7, stream);
  Histogram histogram;
  for (int i = 0; i < count; ++i)
    histogram.add(static_cast<std::int64_t>(1e6 * rng.log_normal(std::log(median_ms), spread)));
  sim::Distribution distribution = made_up_distribution(std::move(histogram));
  distribution.deviation = spread * distribution.mean;
  return distribution;
}

void add_made_up_records(sim::RunResult& result) {
  Rng rng(7, "records");
  Histogram ttft, tpot, itl, e2e, queue, isl, osl;
  sim::Metrics& metrics = result.metrics;
  std::int64_t last = 0;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    sim::Record record{.id = i};
    record.isl = 200 + static_cast<std::int64_t>(rng.below(3000));
    record.osl = i % 50 == 0 ? 1 : 100 + static_cast<std::int64_t>(rng.below(2000));
    record.reused_tokens = record.isl / 4;
    record.arrival_ns = std::int64_t{i} * 70'000'001;
    record.slo_class = static_cast<std::uint8_t>(i % 10 == 9);
    if (i % 100 == 99) {
      record.end = 1;
    } else {
      const auto drawn = [&](double median, double spread) {
        return static_cast<std::int64_t>(rng.log_normal(std::log(median), spread));
      };
      const std::int64_t gap = drawn(14e6, 0.12);
      record.scheduled_ns = record.arrival_ns + drawn(60e6, 1.1);
      record.prefilled_ns = record.scheduled_ns + 25'000 * record.isl + drawn(40e6, 0.3);
      record.first_token_ns = record.prefilled_ns + 20'000'000;
      record.last_token_ns = record.first_token_ns + (record.osl - 1) * gap;
      record.prefill_replica = static_cast<std::int32_t>(i % 3);
      record.decode_replica = static_cast<std::int32_t>(i % 5);
      record.good = true;
      ttft.add(record.first_token_ns - record.arrival_ns);
      e2e.add(record.last_token_ns - record.arrival_ns);
      queue.add(record.scheduled_ns - record.arrival_ns);
      isl.add(record.isl);
      osl.add(record.osl);
      if (record.osl > 1) tpot.add(gap);
      itl.add(gap, record.osl - 1);
      metrics.input_tokens += record.isl;
      metrics.output_tokens += record.osl;
      last = std::max(last, record.last_token_ns);
    }
    result.records.push_back(record);
  }
  metrics.counts = {4000, 3960, 40, 0, {{"queue full", 30}, {"too long", 10}}};
  metrics.duration = double(last) * unit::ns;
  metrics.ttft = made_up_distribution(ttft);
  metrics.tpot = made_up_distribution(tpot);
  metrics.itl = made_up_distribution(itl);
  metrics.e2e = made_up_distribution(e2e);
  metrics.queue_time = made_up_distribution(queue);
  metrics.isl = made_up_distribution(isl);
  metrics.osl = made_up_distribution(osl);
}

void add_made_up_rates(sim::Metrics& metrics, int gpus) {
  const auto per_second = [&](std::int64_t tokens) {
    return double(tokens) * unit::tok / metrics.duration;
  };
  metrics.request_throughput =
      double(metrics.counts.completed) / metrics.duration.in(unit::sec)*unit::per_second;
  metrics.goodput = 0.97 * metrics.request_throughput;
  metrics.output_throughput = per_second(metrics.output_tokens);
  metrics.input_throughput = per_second(metrics.input_tokens);
  metrics.total_throughput = per_second(metrics.output_tokens + metrics.input_tokens);
  metrics.goodput_tokens = 0.97 * metrics.output_throughput;
  metrics.steady = {.from = 30 * unit::sec,
                    .to = 280 * unit::sec,
                    .output = 1.04 * metrics.output_throughput,
                    .output_per_gpu = 1.04 * metrics.output_throughput / double(gpus),
                    .completed = 1.03 * metrics.request_throughput,
                    .goodput = metrics.goodput};
  metrics.output_per_gpu = metrics.output_throughput / double(gpus);
  metrics.total_per_gpu = metrics.total_throughput / double(gpus);
}

sim::PoolResult made_up_pool(const char* name, serve::Role role, int replicas,
                             cost::Parallelism parallelism, sim::TimeSplit time) {
  sim::PoolResult pool;
  pool.name = name;
  pool.role = role;
  pool.replicas = replicas;
  pool.parallelism = parallelism;
  pool.gpus = replicas * parallelism.gpus();
  pool.engine = "trtllm-1.3";
  pool.memory = {.hbm = 288 * unit::GB,
                 .weights = 61.3 * unit::GB,
                 .activations = 7.2 * unit::GB,
                 .reserved = 9.5 * unit::GB,
                 .kv = 210 * unit::GB,
                 .kv_per_token = 35136,
                 .state_per_sequence = {},
                 .kv_tokens = 5976775,
                 .kv_blocks = 186774};
  pool.kv_blocks = pool.memory.kv_blocks * parallelism.dp;
  pool.block_tokens = 32;
  pool.time = time;
  pool.steps = 812345;
  pool.mixed_steps = role == serve::Role::mixed ? 1234 : 0;
  pool.preemptions = role == serve::Role::decode ? 17 : 0;
  pool.batch_mean = role == serve::Role::prefill ? 3.2 : 412.7;
  pool.tokens_per_step = role == serve::Role::prefill ? 8012 : 1031.75;
  pool.kv_used_mean = 0.412;
  pool.kv_used_peak = 0.874;
  pool.queue_mean = 1.7;
  pool.queue_peak = 93;
  pool.prompt_tokens = 1'000'000;
  pool.reused_tokens = 312'000;
  pool.reused_by_tier = {{"hbm", 300'000}, {"host", 12'000}};
  pool.time_by_origin = {0, 0, 0, 0.38, 0.62};
  const auto add = [&](const char* op, cost::OperatorKind kind, double ms, double utilisation) {
    cost::OperatorCost row;
    row.op.name = op;
    row.op.kind = kind;
    row.op.format = catalog::Format::nvfp4;
    row.op.count = 58;
    row.op.flops = 1e9 * unit::flop;
    row.op.weights = 0.2 * unit::GB;
    row.op.activations = 3 * unit::MB;
    row.op.traffic = kind == cost::OperatorKind::collective ? 5 * unit::MB : Bytes{};
    row.op.ranks = parallelism.ep;
    row.utilisation = utilisation;
    row.speed_of_light = ms * utilisation / 58 * unit::ms;
    row.total = ms * unit::ms;
    row.origin = kind == cost::OperatorKind::gemm ? Origin::datasheet : Origin::assumed;
    row.source = "vendor's figure, efficiency assumed";
    pool.typical_step.push_back(row);
  };
  add("qkv_a_proj", cost::OperatorKind::gemm, 0.9, 0.62);
  add(role == serve::Role::prefill ? "mla_prefill" : "mla_decode",
      role == serve::Role::prefill ? cost::OperatorKind::attention_prefill
                                   : cost::OperatorKind::attention_decode,
      4.1, 0.7);
  add("o_proj", cost::OperatorKind::gemm, 1.3, 0.62);
  add("moe_dispatch", cost::OperatorKind::collective, 2.4, 0.55);
  add("experts", cost::OperatorKind::expert_gemm, 5.7, 0.58);
  add("moe_combine", cost::OperatorKind::collective, 3.1, 0.55);
  add("norm", cost::OperatorKind::elementwise, 0.4, 0.8);
  return pool;
}

void add_made_up_series(sim::RunResult& result) {
  sim::Series& series = result.series;
  series.interval = 1 * unit::sec;
  series.pools.resize(result.pools.size());
  Rng rng(7, "series");
  const double gap = std::numeric_limits<double>::quiet_NaN();
  for (int second = 1; second <= 300; ++second) {
    const double wave = 1 + 0.35 * std::sin(second / 23.0), ramp = std::min(1.0, second / 40.0);
    const auto noisy = [&](double mean) {
      return mean * ramp * wave * (0.9 + 0.2 * rng.uniform());
    };
    series.time_s.push_back(second);
    series.arrivals.push_back(std::round(noisy(820)));
    series.completions.push_back(std::round(noisy(800)));
    series.output_tokens_per_s.push_back(noisy(1.35e6));
    series.input_tokens_per_s.push_back(noisy(9.8e5));
    series.concurrency.push_back(std::round(noisy(24000)));
    series.ttft_p50_ms.push_back(second < 3 ? gap : noisy(410));
    series.ttft_p99_ms.push_back(second < 3 ? gap : noisy(1900));
    series.tpot_p50_ms.push_back(second < 8 ? gap : 12 + 6 * ramp * wave);
    for (std::size_t i = 0; i < series.pools.size(); ++i) {
      sim::Series::PoolSeries& pool = series.pools[i];
      pool.running.push_back(std::round(noisy(i == 0 ? 900 : 23000)));
      pool.waiting.push_back(std::round(noisy(i == 0 ? 70 : 12)));
      pool.kv_used.push_back(std::min(1.0, noisy(i == 0 ? 0.2 : 0.55)));
      pool.reuse.push_back(0.3 + 0.1 * wave);
      pool.busy.push_back(std::min(1.0, noisy(i == 0 ? 0.6 : 0.72)));
    }
  }
}

void add_made_up_racks(sim::RunResult& result) {
  Rng rng(7, "racks");
  for (int rack = 0; rack < result.racks; ++rack) {
    sim::RackUse use;
    use.rack = rack;
    use.gpus = 72;
    use.label = rack < 20   ? "prefill"
                : rack < 61 ? "decode"
                : rack < 62 ? "prefill+decode"
                            : "idle";
    use.gpus_used = rack < 62 ? 72 : 0;
    const double level = rack < 20 ? 0.62 : rack < 62 ? 0.78 : 0;
    for (int gpu = 0; gpu < 72; ++gpu)
      use.gpu_utilisation.push_back(level == 0 ? 0 : level + 0.15 * (rng.uniform() - 0.5));
    for (const double each : use.gpu_utilisation) use.utilisation += each / 72;
    result.rack_use.push_back(use);
  }
}

workload::TraceInfo made_up_trace() {
  workload::TraceInfo trace;
  trace.format = "mooncake";
  trace.time_unit = "ms";
  trace.block_tokens = 512;
  trace.stats = {.requests = 12031,
                 .sessions = 0,
                 .span = 3536 * unit::sec,
                 .cv = 1.21,
                 .dispersion_1s = 1.9,
                 .dispersion_10s = 6.2,
                 .dispersion_60s = 11.4,
                 .isl = {12035, 6909, 39000, 61000, 126195},
                 .osl = {343, 350, 800, 890, 2000},
                 .reuse = 0.4021};
  trace.scaled = trace.stats;
  trace.scaled.requests = 12031 * 4;
  trace.scaled.cv = 1.06;
  trace.skipped = {{"longer than the model's context", 3}};
  return trace;
}

}  // namespace

sim::RunResult made_up_result() {
  sim::RunResult result;
  result.scenario_name = "reasoning-64-racks";
  result.scenario_yaml = "name: reasoning-64-racks\nmodel: deepseek-r1-nvfp4  # </script><b>&\n";
  result.version = "0.1.0";
  result.seed = 42;
  result.digest = 0x0123456789abcdefu;
  result.simulated = 300 * unit::sec;
  result.events = 9'123'456;
  result.steps = 1'624'690;
  result.racks = 64;
  result.gpus = 4608;
  result.gpus_used = 4464;
  result.model = "deepseek-r1-nvfp4";
  result.system = "gb300-nvl72";
  result.gpu = "GB300";
  result.model_parameters = 671'026'419'200;
  result.model_active = 37'552'000'000;
  add_made_up_records(result);
  sim::Metrics& metrics = result.metrics;
  metrics.chunk_latency = made_up_latency("chunk", 14, 0.2, 1000);
  metrics.concurrency_mean = 312.5;
  metrics.concurrency_peak = 401;
  add_made_up_rates(metrics, result.gpus_used);
  metrics.slos = {{.name = "interactive",
                   .ttft = 2 * unit::sec,
                   .tpot = 25 * unit::ms,
                   .e2e = {},
                   .attainment = 0.99,
                   .requests = 3600,
                   .good = 3582,
                   .missed_ttft = 18},
                  {.name = "batch",
                   .ttft = {},
                   .tpot = {},
                   .e2e = 60 * unit::sec,
                   .attainment = 0.95,
                   .requests = 400,
                   .good = 360,
                   .not_served = 40}};
  result.pools = {made_up_pool("prefill", serve::Role::prefill, 360, {.tp = 1, .dp = 4, .ep = 4},
                               {0.41, 0.08, 0.07, 0.06, 0.38}),
                  made_up_pool("decode", serve::Role::decode, 42, {.tp = 1, .dp = 72, .ep = 72},
                               {0.09, 0.44, 0.17, 0.06, 0.24})};
  result.transfers = {.count = 3960,
                      .bytes = 23.5 * unit::TB,
                      .duration = made_up_latency("transfer", 18, 0.5, 396),
                      .wait_for_slot = made_up_latency("slot", 2, 1.0, 3960),
                      .inside_domain = 0.11};
  add_made_up_series(result);
  add_made_up_racks(result);
  for (int i = 0; i < 20; ++i)
    result.slices.push_back({"decode/replica 0",
                             "step",
                             i * 15'000'001,
                             14'000'000,
                             {{"sequences", 400.0 + i}, {"tokens", 1000.0}}});
  result.slices.push_back({"requests/0", "prefill \"first\"", 1'000, 100'000'000, {}});
  result.trace = made_up_trace();
  result.time_by_origin = {0, 0, 0, 0.41, 0.59};
  result.bottleneck = {
      "decode pool: HBM bandwidth; 58 % of its busy time is spent reading "
      "weights and KV",
      "decode", "memory"};
  result.warnings = {"GEMM efficiency on GB300 is assumed: no measured table covers NVFP4 there",
                     "3 trace rows were longer than the model's context and left out"};
  return result;
}

sim::RunResult made_up_empty_result() {
  sim::RunResult result;
  result.scenario_name = "empty";
  result.version = "0.1.0";
  result.racks = 1;
  result.gpus = result.gpus_used = 72;
  result.model = "llama-3.1-8b";
  result.system = "h100-8";
  result.gpu = "H100";
  result.metrics.slos = {{.name = "default", .ttft = 1 * unit::sec, .tpot = {}, .e2e = {}}};
  result.pools.resize(1);
  result.pools[0].name = "serve";
  result.pools[0].time.idle = 1;
  return result;
}

}  // namespace racktwin::report
