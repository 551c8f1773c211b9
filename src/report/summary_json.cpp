#include <cmath>
#include <nlohmann/json.hpp>

#include "numerics/format.hpp"
#include "report/json_text.hpp"
#include "report/numbers.hpp"
#include "report/report.hpp"

namespace racktwin::report {
namespace {

using Json = nlohmann::ordered_json;  // keeps the order in which keys are added
using sim::Distribution;
using sim::Metrics;
using sim::PoolResult;
using sim::RunResult;

Json value(double number) {
  if (!std::isfinite(number)) return nullptr;
  return number == 0 ? 0.0 : rounded(number);
}
Json value(const std::optional<double>& number) {
  return number ? value(*number) : Json(nullptr);
}
Json milliseconds(const std::optional<Seconds>& time) {
  return time ? value(time->in(unit::ms)) : Json(nullptr);
}
Json gigabytes(Bytes size) {
  return value(size.in(unit::GB));
}

template <class Map>
Json counts(const Map& map) {
  Json json = Json::object();
  for (const auto& [name, count] : map) json[name] = count;
  return json;
}

Json shares(const std::array<double, origins>& parts) {
  Json json = Json::object();
  for (int i = 0; i < origins; ++i)
    json[std::string(racktwin::name(static_cast<Origin>(i)))] =
        value(parts[static_cast<std::size_t>(i)]);
  return json;
}

// The names of `vllm bench serve`: mean_ttft_ms, median_ttft_ms, std_ttft_ms, p99_ttft_ms.
void add_latency(Json& json, const std::string& name, const Distribution& distribution) {
  const auto add = [&](const std::string& figure, double nanoseconds) {
    json[figure + "_" + name + "_ms"] = value(in_ms(distribution, nanoseconds));
  };
  add("mean", distribution.mean);
  add("median", distribution.p50);
  add("std", distribution.deviation.value_or(std::nan("")));
  add("p90", distribution.p90);
  add("p95", distribution.p95);
  add("p99", distribution.p99);
  add("max", distribution.max);
}

// Of durations that vLLM has no name for.
Json durations(const Distribution& distribution) {
  Json json;
  const auto add = [&](const char* figure, double nanoseconds) {
    json[figure] = value(in_ms(distribution, nanoseconds));
  };
  add("mean_ms", distribution.mean);
  add("p50_ms", distribution.p50);
  add("p90_ms", distribution.p90);
  add("p95_ms", distribution.p95);
  add("p99_ms", distribution.p99);
  add("max_ms", distribution.max);
  return json;
}

Json lengths(const Distribution& distribution) {
  Json json;
  const auto add = [&](const char* figure, double tokens) {
    json[figure] = distribution.histogram.count() ? value(tokens) : Json(nullptr);
  };
  add("mean", distribution.mean);
  add("p50", distribution.p50);
  add("p90", distribution.p90);
  add("p95", distribution.p95);
  add("p99", distribution.p99);
  add("max", distribution.max);
  return json;
}

Json steady(const Metrics& metrics) {
  if (!has_steady(metrics)) return nullptr;
  const Metrics::Steady& window = metrics.steady;
  return {{"from_s", value(window.from.in(unit::sec))},
          {"to_s", value(window.to.in(unit::sec))},
          {"output_throughput", value(window.output.in(unit::tok / unit::sec))},
          {"output_throughput_per_gpu", value(window.output_per_gpu.in(unit::tok / unit::sec))},
          {"request_throughput", value(window.completed.in(unit::per_second))},
          {"request_goodput", value(goodput(metrics, window.goodput.in(unit::per_second)))}};
}

void add_metrics(Json& json, const Metrics& metrics) {
  const auto rate_of = [&](auto quantity) {
    return value(rate(metrics, quantity.in(decltype(quantity)::of_base_units(1))));
  };
  json["duration"] = value(metrics.duration.in(unit::sec));
  json["completed"] = metrics.counts.completed;
  json["failed"] = metrics.counts.shed + metrics.counts.unfinished;
  json["total_input_tokens"] = metrics.input_tokens;
  json["total_output_tokens"] = metrics.output_tokens;
  json["request_throughput"] = rate_of(metrics.request_throughput);
  json["request_goodput"] = value(goodput(metrics, metrics.goodput.in(unit::per_second)));
  json["output_throughput"] = rate_of(metrics.output_throughput);
  json["total_token_throughput"] = rate_of(metrics.total_throughput);
  json["max_concurrent_requests"] = metrics.concurrency_peak;
  add_latency(json, "ttft", metrics.ttft);
  add_latency(json, "tpot", metrics.tpot);
  add_latency(json, "itl", metrics.itl);
  add_latency(json, "e2el", metrics.e2e);
  json["input_throughput"] = rate_of(metrics.input_throughput);
  json["output_throughput_per_gpu"] = rate_of(metrics.output_per_gpu);
  json["total_token_throughput_per_gpu"] = rate_of(metrics.total_per_gpu);
  json["token_goodput"] = value(goodput(metrics, metrics.goodput_tokens.in(unit::tok / unit::sec)));
  json["steady"] = steady(metrics);
  json["mean_concurrent_requests"] = value(metrics.concurrency_mean);
  json["requests"] = {{"arrived", metrics.counts.arrived},
                      {"completed", metrics.counts.completed},
                      {"shed", metrics.counts.shed},
                      {"unfinished", metrics.counts.unfinished},
                      {"shed_reasons", counts(metrics.counts.shed_reasons)}};
  json["input_length"] = lengths(metrics.isl);
  json["output_length"] = lengths(metrics.osl);
  json["queue_time"] = durations(metrics.queue_time);
  json["chunk_latency"] = durations(metrics.chunk_latency);
}

Json slos(const Metrics& metrics) {
  Json list = Json::array();
  for (const sim::SloOutcome& slo : metrics.slos)
    list.push_back({{"name", slo.name},
                    {"ttft_ms", milliseconds(slo.ttft)},
                    {"tpot_ms", milliseconds(slo.tpot)},
                    {"e2el_ms", milliseconds(slo.e2e)},
                    {"attainment", value(slo.attainment)},
                    {"requests", slo.requests},
                    {"good", slo.good},
                    {"reached", slo.requests ? value(slo.reached()) : Json(nullptr)},
                    {"met", has_bound(slo) && slo.requests ? Json(slo.met()) : Json(nullptr)},
                    {"missed_ttft", slo.missed_ttft},
                    {"missed_tpot", slo.missed_tpot},
                    {"missed_e2el", slo.missed_e2e},
                    {"not_served", slo.not_served}});
  return list;
}

Json memory(const PoolResult& pool) {
  const cost::MemoryPlan& plan = pool.memory;
  return {{"hbm_gb", gigabytes(plan.hbm)},
          {"weights_gb", gigabytes(plan.weights)},
          {"activations_gb", gigabytes(plan.activations)},
          {"reserved_gb", gigabytes(plan.reserved)},
          {"kv_gb", gigabytes(plan.kv)},
          {"kv_bytes_per_token", value(plan.kv_per_token)},
          {"kv_tokens", plan.kv_tokens}};
}

Json operators(const PoolResult& pool) {
  Json list = Json::array();
  for (const cost::OperatorCost& row : pool.typical_step) {
    const bool collective = row.op.kind == cost::OperatorKind::collective;
    list.push_back({{"name", row.op.name},
                    {"kind", name(row.op.kind)},
                    {"format", numerics::info(row.op.format).name},
                    {"layers", row.op.count},
                    {"total_ms", value(row.total.in(unit::ms))},
                    {"speed_of_light_ms_per_layer", value(row.speed_of_light.in(unit::ms))},
                    {"utilisation", value(row.utilisation)},
                    {"tflop_per_layer", value(row.op.flops.in(unit::TFLOP))},
                    {"weights_gb_per_layer", gigabytes(row.op.weights)},
                    {"activations_gb_per_layer", gigabytes(row.op.activations)},
                    {"kv_gb_per_layer", gigabytes(row.op.kv)},
                    {"traffic_gb_per_layer", collective ? gigabytes(row.op.traffic) : Json(0.0)},
                    {"ranks", collective ? row.op.ranks : 1},
                    {"origin", racktwin::name(row.origin)},
                    {"source", row.source}});
  }
  return list;
}

Json pool(const PoolResult& pool, Seconds simulated) {
  const auto step_ms = [&](double part) {
    return pool.steps ? value(pool.per_step(part, simulated).in(unit::ms)) : Json(nullptr);
  };
  Json json;
  json["name"] = pool.name;
  json["role"] = name(pool.role);
  json["replicas"] = pool.replicas;
  json["gpus"] = pool.gpus;
  json["parallelism"] = {{"tp", pool.parallelism.tp},
                         {"pp", pool.parallelism.pp},
                         {"dp", pool.parallelism.dp},
                         {"ep", pool.parallelism.ep}};
  json["engine"] = pool.engine;
  json["memory_per_gpu"] = memory(pool);
  json["kv_blocks"] = pool.kv_blocks;
  json["block_tokens"] = pool.block_tokens;
  json["time"] = {{"compute", value(pool.time.compute)},
                  {"memory", value(pool.time.memory)},
                  {"communication", value(pool.time.communication)},
                  {"overhead", value(pool.time.overhead)},
                  {"idle", value(pool.time.idle)}};
  json["time_per_step_ms"] = {{"compute", step_ms(pool.time.compute)},
                              {"memory", step_ms(pool.time.memory)},
                              {"communication", step_ms(pool.time.communication)},
                              {"overhead", step_ms(pool.time.overhead)},
                              {"total", step_ms(busy(pool.time))}};
  json["steps"] = pool.steps;
  json["mixed_steps"] = pool.mixed_steps;
  json["preemptions"] = pool.preemptions;
  json["restarts"] = pool.restarts;
  json["sequences_per_step"] = pool.steps ? value(pool.batch_mean) : Json(nullptr);
  json["tokens_per_step"] = pool.steps ? value(pool.tokens_per_step) : Json(nullptr);
  json["kv_used_mean"] = value(pool.kv_used_mean);
  json["kv_used_peak"] = value(pool.kv_used_peak);
  json["queue_mean"] = value(pool.queue_mean);
  json["queue_peak"] = pool.queue_peak;
  json["prompt_tokens"] = pool.prompt_tokens;
  json["reused_tokens"] = pool.reused_tokens;
  json["reuse"] = value(pool.reuse());
  json["reused_by_tier"] = counts(pool.reused_by_tier);
  json["time_by_origin"] = shares(pool.time_by_origin);
  json["typical_step"] = operators(pool);
  return json;
}

Json transfers(const sim::Transfers& transfers) {
  if (transfers.count == 0) return nullptr;
  return {{"count", transfers.count},
          {"gb", gigabytes(transfers.bytes)},
          {"duration", durations(transfers.duration)},
          {"wait_for_slot", durations(transfers.wait_for_slot)},
          {"inside_domain", value(transfers.inside_domain)}};
}

Json trace_length(const workload::TraceStats::Length& length) {
  return {{"mean", value(length.mean)},
          {"p50", length.p50},
          {"p95", length.p95},
          {"p99", length.p99},
          {"max", length.max}};
}

Json trace_stats(const workload::TraceStats& stats) {
  return {{"requests", stats.requests},
          {"sessions", stats.sessions},
          {"span_s", value(stats.span.in(unit::sec))},
          {"cv", value(stats.cv)},
          {"dispersion_1s", value(stats.dispersion_1s)},
          {"dispersion_10s", value(stats.dispersion_10s)},
          {"dispersion_60s", value(stats.dispersion_60s)},
          {"isl", trace_length(stats.isl)},
          {"osl", trace_length(stats.osl)},
          {"reuse", value(stats.reuse)}};
}

Json trace(const std::optional<workload::TraceInfo>& info) {
  if (!info) return nullptr;
  return {{"format", info->format},
          {"time_unit", info->time_unit},
          {"block_tokens", info->block_tokens ? Json(info->block_tokens) : Json(nullptr)},
          {"closed_loop", info->closed_loop},
          {"recorded", trace_stats(info->stats)},
          {"scaled", trace_stats(info->scaled)},
          {"skipped", counts(info->skipped)}};
}

Json racks(const RunResult& result) {
  Json list = Json::array();
  for (const sim::RackUse& rack : result.rack_use)
    list.push_back({{"rack", rack.rack},
                    {"label", rack.label},
                    {"gpus", rack.gpus},
                    {"gpus_used", rack.gpus_used},
                    {"utilisation", value(rack.utilisation)}});
  return list;
}

Json tree(const RunResult& result) {
  Json json;
  json["schema"] = "racktwin.summary/1";
  json["scenario_name"] = result.scenario_name;
  json["partial"] = result.partial;
  json["partial_reason"] = result.partial ? Json(result.partial_reason) : Json(nullptr);
  add_metrics(json, result.metrics);
  json["slos"] = slos(result.metrics);
  json["bottleneck"] = {{"sentence", result.bottleneck.sentence},
                        {"pool", result.bottleneck.pool},
                        {"limit", result.bottleneck.limit}};
  json["warnings"] = result.warnings;
  json["cluster"] = {{"model", result.model},
                     {"model_parameters", result.model_parameters},
                     {"model_active_parameters", result.model_active},
                     {"system", result.system},
                     {"gpu", result.gpu},
                     {"racks", result.racks},
                     {"gpus", result.gpus},
                     {"gpus_used", result.gpus_used}};
  json["pools"] = Json::array();
  for (const PoolResult& one : result.pools) json["pools"].push_back(pool(one, result.simulated));
  json["transfers"] = transfers(result.transfers);
  json["racks"] = racks(result);
  json["trace"] = trace(result.trace);
  json["provenance"] = {{"version", result.version},
                        {"seed", result.seed},
                        {"simulated_s", value(result.simulated.in(unit::sec))},
                        {"events", result.events},
                        {"steps", result.steps},
                        {"time_by_origin", shares(result.time_by_origin)}};
  json["digest"] = hexadecimal(result.digest);
  json["scenario"] = result.scenario_yaml;
  return json;
}

}  // namespace

std::string summary_json(const RunResult& result) {
  return tree(result).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string json_text(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_numbers(std::span<const double> numbers) {
  std::string text = "[";
  for (const double each : numbers) {
    if (text.size() > 1) text += ',';
    text += number(each, "null");
  }
  return text + "]";
}

}  // namespace racktwin::report
