// Random small scenarios on models and machines of the catalogue: macro-steps change no token
// time, everybody ends, and the figures agree with one another.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "serve/router.hpp"
#include "sim/fixtures.hpp"

namespace racktwin::sim {
namespace {

struct Machine {
  const char *model, *system;
  cost::Parallelism shape;
  int draft = 0;
};
const Machine machines[] = {
    {"llama-3.1-8b", "h100-8", {}, 0},
    {"llama-3.1-8b", "h200-8", {.tp = 2}, 0},
    {"llama-3.1-70b", "h200-8", {.tp = 4, .pp = 2}, 0},
    {"gpt-oss-20b", "h100-8", {.tp = 1, .pp = 1, .dp = 2}, 0},
    {"qwen3-30b-a3b", "h200-8", {.tp = 1, .pp = 1, .dp = 4, .ep = 4}, 0},
    {"deepseek-r1-nvfp4", "gb300-nvl72", {.tp = 1, .pp = 1, .dp = 8, .ep = 8}, 3},
    {"deepseek-v3.2-nvfp4", "gb200-nvl72", {.tp = 4, .pp = 1, .dp = 2, .ep = 8}, 1},
};

template <std::size_t N, class T>
const T& pick(Rng& rng, const T (&of)[N]) {
  return of[rng.below(N)];
}

Scenario draw(std::uint64_t seed) {
  Rng rng(seed, "scenario");
  const auto chance = [&](double part) { return rng.uniform() < part; };
  Scenario s = fixtures::dense();
  s.seed = seed;
  s.horizon = (0.2 + rng.uniform()) * unit::sec;
  const Machine& machine = pick(rng, machines);
  s.model = machine.model;
  s.system = machine.system;
  s.racks = 2;
  serve::Pool pool{.replicas = 1 + static_cast<int>(rng.below(2)), .parallelism = machine.shape};
  const char* const engines[] = {"trtllm-1.3", "sglang-0.5", "vllm-0.2x"};
  pool.engine = pick(rng, engines);
  if (chance(0.5)) pool.kv_blocks = static_cast<std::int64_t>(100 + rng.below(400));
  if (chance(0.3)) pool.max_sequences = 1 + static_cast<int>(rng.below(8));
  if (chance(0.3)) pool.max_batch_tokens = static_cast<std::int64_t>(512 + rng.below(2000));
  if (machine.draft > 0 && chance(0.6))
    pool.speculation = {machine.draft, std::vector<double>(std::size_t(machine.draft), 0.7)};
  pool.prefix_caching = chance(0.8);
  if (chance(0.3)) pool.tiers = {.host = 4 * unit::GB, .nvme = 20 * unit::GB};
  s.deployment.pools = {pool};
  s.deployment.pools[0].name = "serve";
  if (chance(0.4)) {
    s.deployment.pools = {pool, pool};
    s.deployment.pools[0].name = "prefill";
    s.deployment.pools[0].role = serve::Role::prefill;
    s.deployment.pools[0].speculation = {};
    s.deployment.pools[1].name = "decode";
    s.deployment.pools[1].role = serve::Role::decode;
    if (chance(0.4)) s.deployment.disaggregation.local_prefill_below = 300;
    s.deployment.disaggregation.layerwise_overlap = chance(0.5);
  }
  const auto routers = serve::router_names();
  s.deployment.router.policy = routers[rng.below(routers.size())];
  s.deployment.decode_router.policy = routers[rng.below(routers.size())];
  if (chance(0.3)) s.deployment.router.staleness = 50 * unit::ms;
  if (chance(0.3)) s.deployment.router.replicas = 3;
  const auto isl = fixtures::lengths(200 + 1500 * rng.uniform(), 6000);
  const auto osl = fixtures::lengths(5 + 100 * rng.uniform(), 400);
  const std::uint64_t kind = rng.below(4);
  if (kind == 0) {
    s.load = fixtures::open_loop(5 + 60 * rng.uniform(), isl, osl);
  } else if (kind == 1) {
    s.load = workload::ClosedLoop{.concurrency = static_cast<std::int64_t>(1 + rng.below(20)),
                                  .requests = 40,
                                  .isl = isl,
                                  .osl = osl};
  } else if (kind == 2) {
    s.load = workload::Burst{.requests = 40, .isl = isl, .osl = osl};
  } else {
    s.load = fixtures::conversations();
  }
  return s;
}

// Two runs of one scenario, whatever the execution.
void expect_same(const RunResult& a, const RunResult& b) {
  EXPECT_EQ(a.digest, b.digest);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.metrics.itl.histogram, b.metrics.itl.histogram);
  EXPECT_EQ(a.metrics.e2e.histogram, b.metrics.e2e.histogram);
  ASSERT_EQ(a.records.size(), b.records.size());
  for (std::size_t i = 0; i < a.records.size(); ++i) {
    ASSERT_EQ(a.records[i].id, b.records[i].id);
    ASSERT_EQ(a.records[i].first_token_ns, b.records[i].first_token_ns) << a.records[i].id;
    ASSERT_EQ(a.records[i].last_token_ns, b.records[i].last_token_ns) << a.records[i].id;
  }
}

class ScenarioSwarm : public testing::TestWithParam<int> {};

TEST_P(ScenarioSwarm, macro_steps_change_no_token_time_and_everybody_ends) {
  constexpr int per_case = 50;
  int ran = 0;
  for (int k = 0; k < per_case && !HasFailure(); ++k) {
    const auto seed = static_cast<std::uint64_t>(1 + per_case * GetParam() + k);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Scenario s = draw(seed);
    const auto macro = run(s, fixtures::built_in());
    if (!macro.ok()) {  // refused, with words
      EXPECT_FALSE(macro.error().message.empty());
      continue;
    }
    ++ran;
    const RunResult& r = macro.value();
    EXPECT_EQ(r.metrics.counts.unfinished, 0);
    EXPECT_EQ(r.metrics.counts.arrived, r.metrics.counts.completed + r.metrics.counts.shed);
    for (const auto& pool : r.series.pools) {
      EXPECT_EQ(pool.kv_used.back(), 0);
    }
    if (r.metrics.counts.shed == 0 && r.metrics.counts.arrived > 1) {
      const double expected =
          r.metrics.request_throughput.in(unit::per_second)*r.metrics.e2e.mean / 1e9;
      EXPECT_NEAR(r.metrics.concurrency_mean, expected, 1e-6 * expected);
    }
    s.execution = Execution::plain;
    expect_same(r, fixtures::must_run(s));
    if (HasFailure()) {
      ADD_FAILURE() << to_yaml(s);
    }
  }
  EXPECT_GT(ran, per_case / 2);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ScenarioSwarm, testing::Range(0, 20));

}  // namespace
}  // namespace racktwin::sim
