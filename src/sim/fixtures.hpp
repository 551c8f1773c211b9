// Small scenarios of every kind for the tests of runs: a second or two of load each, on models
// and machines of the catalogue.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/run.hpp"

namespace racktwin::sim::fixtures {

struct Named {
  std::string name;
  Scenario scenario;
  bool closed = false;  // arrivals follow the answers
};

inline const catalog::Catalog& built_in() {
  static const catalog::Catalog catalog = [] {
    auto read = catalog::Catalog::built_in();
    RACKTWIN_CHECK(read.ok());
    return std::move(read).value();
  }();
  return catalog;
}

inline RunResult must_run(const Scenario& scenario) {
  auto result = run(scenario, built_in());
  if (!result.ok()) ADD_FAILURE() << result.error().text();
  return result.ok() ? std::move(result).value() : RunResult{};
}

inline workload::Lengths lengths(double mean, std::int64_t max, double cv = 0.8) {
  return {.kind = workload::Lengths::Kind::log_normal, .mean = mean, .cv = cv, .max = max};
}
inline workload::OpenLoop open_loop(double rate, workload::Lengths isl, workload::Lengths osl) {
  return {.rate = rate * unit::per_second,
          .clients = {{.name = "all", .isl = std::move(isl), .osl = std::move(osl)}}};
}

// Four replicas of Llama 3.1 8B on one H100 node, 40 requests a second.
inline Scenario dense() {
  Scenario s;
  s.name = "dense";
  s.model = "llama-3.1-8b";
  s.system = "h100-8";
  s.horizon = 2 * unit::sec;
  s.records = true;
  s.series_interval = 100 * unit::ms;
  s.deployment.pools = {{.name = "serve", .replicas = 4}};
  s.load = open_loop(40, lengths(900, 6000), lengths(60, 400));
  return s;
}
inline workload::Sessions conversations() {
  return {.starts = {.rate = 15 * unit::per_second},
          .turns = {.kind = workload::Lengths::Kind::uniform, .min = 1, .max = 6},
          .first_prompt = lengths(1500, 6000),
          .new_tokens = lengths(200, 1000),
          .osl = lengths(50, 200),
          .think_ms = {.kind = workload::Lengths::Kind::exponential, .mean = 200, .max = 2000},
          .system_prompt = 512,
          .sub_agents = 0.1,
          .max_context = 16000,
          .block_tokens = 64};
}
inline Scenario disaggregated() {
  Scenario s = dense();
  s.name = "disaggregated";
  s.model = "deepseek-r1-nvfp4";
  s.system = "gb300-nvl72";
  serve::Pool prefill{.name = "prefill",
                      .role = serve::Role::prefill,
                      .replicas = 2,
                      .parallelism = {.dp = 4, .ep = 4}};
  serve::Pool decode{.name = "decode",
                     .role = serve::Role::decode,
                     .replicas = 2,
                     .parallelism = {.dp = 8, .ep = 8}};
  s.deployment.pools = {prefill, decode};
  return s;
}

inline std::vector<Named> make_scenarios() {
  std::vector<Named> all = {{"dense", dense()}, {"disaggregated", disaggregated()}};
  Scenario s = dense();
  s.deployment.pools[0].replicas = 2;
  s.deployment.pools[0].parallelism = {.tp = 2, .pp = 2};
  all.push_back({"pipeline", s});
  s = disaggregated();
  s.deployment.pools = {{.name = "serve", .replicas = 2, .parallelism = {.dp = 8, .ep = 8}}};
  s.deployment.pools[0].speculation = {3, {0.9, 0.7, 0.4}};
  all.push_back({"speculation", s});
  s = dense();
  s.model = "gpt-oss-20b";
  all.push_back({"window", s});
  s = dense();
  s.load = conversations();
  all.push_back({"sessions", s, true});
  s.deployment.pools[0].block_tokens = 16;
  s.deployment.pools[0].replicas = 2;
  s.deployment.pools[0].kv_blocks = 1000;
  s.deployment.pools[0].tiers = {.host = 8 * unit::GB, .nvme = 100 * unit::GB};
  all.push_back({"tiers", s, true});
  s = dense();
  s.deployment.pools[0].block_tokens = 16;
  s.deployment.pools[0].kv_blocks = 450;
  s.load = open_loop(60, lengths(300, 1200),
                     {.kind = workload::Lengths::Kind::uniform, .min = 250, .max = 300});
  all.push_back({"pressure", s});
  s = dense();
  s.deployment.router.staleness = 200 * unit::ms;
  s.deployment.router.replicas = 4;
  all.push_back({"stale", s});
  s = disaggregated();
  s.load = conversations();
  s.deployment.disaggregation.local_prefill_below = 400;
  s.deployment.disaggregation.layerwise_overlap = true;
  all.push_back({"local", s, true});
  s = disaggregated();
  s.deployment.pools[0].kv_blocks = 300;
  s.deployment.pools[1].kv_blocks = 300;
  s.deployment.pools[1].max_sequences = 1;
  all.push_back({"back_pressure", s});
  s = dense();
  s.load = workload::ClosedLoop{
      .concurrency = 24, .requests = 120, .isl = lengths(900, 6000), .osl = lengths(60, 400)};
  all.push_back({"closed", s, true});
  s.load = workload::Burst{.requests = 100, .isl = lengths(700, 2000), .osl = lengths(50, 200)};
  all.push_back({"burst", s});
  return all;
}
inline const std::vector<Named>& scenarios() {
  static const std::vector<Named> all = make_scenarios();
  return all;
}

}  // namespace racktwin::sim::fixtures
