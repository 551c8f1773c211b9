// The laws of a run, on every router, every engine and scenarios of every kind.
#include <gtest/gtest.h>

#include <cmath>

#include "serve/router.hpp"
#include "sim/fixtures.hpp"

namespace racktwin::sim {
namespace {

using fixtures::Named;

void check_records(const RunResult& r) {
  const Counts& c = r.metrics.counts;
  EXPECT_GT(c.arrived, 0);
  EXPECT_EQ(c.arrived, c.completed + c.shed + c.unfinished);
  EXPECT_EQ(static_cast<std::int64_t>(r.records.size()), c.arrived);
  for (const Record& q : r.records) {
    if (q.end != 0) continue;
    EXPECT_LE(q.arrival_ns, q.scheduled_ns);
    EXPECT_LT(q.scheduled_ns, q.prefilled_ns);
    EXPECT_LE(q.prefilled_ns, q.first_token_ns);
    EXPECT_LE(q.first_token_ns, q.last_token_ns);
    EXPECT_EQ(q.osl > 1, q.tpot().has_value());
    EXPECT_LT(q.reused_tokens, q.isl);
    EXPECT_LE(*q.ttft(), *q.e2e());
  }
}

// Nobody left, no block held.
void check_drained(const RunResult& r) {
  EXPECT_EQ(r.metrics.counts.unfinished, 0);
  for (const auto& pool : r.series.pools) EXPECT_EQ(pool.kv_used.back(), 0);
  for (const std::string& warning : r.warnings)
    EXPECT_EQ(warning.find("no progress"), std::string::npos) << warning;
}

// The mean number in the system is throughput times the mean time in it: exactly so when all
// that came has left.
void check_little(const RunResult& r) {
  if (r.metrics.counts.completed != r.metrics.counts.arrived) return;
  const double expected =
      r.metrics.request_throughput.in(unit::per_second)*r.metrics.e2e.mean / 1e9;
  EXPECT_NEAR(r.metrics.concurrency_mean, expected, 1e-6 * expected);
}

void check_finite(const RunResult& r) {
  for (const PoolResult& p : r.pools) {
    const TimeSplit& t = p.time;
    double sum = 0;
    for (const double part : {t.compute, t.memory, t.communication, t.overhead, t.idle}) {
      EXPECT_TRUE(std::isfinite(part) && part >= 0 && part <= 1) << part;
      sum += part;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_TRUE(std::isfinite(p.batch_mean) && std::isfinite(p.tokens_per_step));
    EXPECT_LE(p.kv_used_peak, 1);
    EXPECT_LE(p.reused_tokens, p.prompt_tokens);
    std::int64_t by_tier = 0;
    for (const auto& [tier, tokens] : p.reused_by_tier) by_tier += tokens;
    EXPECT_EQ(by_tier, p.reused_tokens);
  }
}

// Equal to the nanosecond, whatever else `b` was run with.
void check_same(const RunResult& a, const RunResult& b) {
  EXPECT_EQ(a.digest, b.digest);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.metrics.itl.histogram, b.metrics.itl.histogram);
  EXPECT_EQ(a.metrics.chunk_latency.histogram, b.metrics.chunk_latency.histogram);
  EXPECT_EQ(a.metrics.concurrency_mean, b.metrics.concurrency_mean);
  EXPECT_EQ(a.series.output_tokens_per_s, b.series.output_tokens_per_s);
  ASSERT_EQ(a.records.size(), b.records.size());
  for (std::size_t i = 0; i < a.records.size(); ++i) {
    const Record &x = a.records[i], &y = b.records[i];
    ASSERT_EQ(x.id, y.id) << i;
    ASSERT_EQ(x.scheduled_ns, y.scheduled_ns) << x.id;
    ASSERT_EQ(x.prefilled_ns, y.prefilled_ns) << x.id;
    ASSERT_EQ(x.first_token_ns, y.first_token_ns) << x.id;
    ASSERT_EQ(x.last_token_ns, y.last_token_ns) << x.id;
    ASSERT_EQ(x.decode_replica, y.decode_replica) << x.id;
    ASSERT_EQ(x.preemptions, y.preemptions) << x.id;
  }
  for (std::size_t p = 0; p < a.pools.size(); ++p) {
    EXPECT_EQ(a.pools[p].time.memory, b.pools[p].time.memory);
    EXPECT_EQ(a.pools[p].preemptions, b.pools[p].preemptions);
    EXPECT_EQ(a.pools[p].kv_used_mean, b.pools[p].kv_used_mean);
  }
}

struct Case {
  std::size_t scenario;
  std::string engine;
  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << fixtures::scenarios()[c.scenario].name << " on " << c.engine;
  }
};

class Laws : public testing::TestWithParam<Case> {
 protected:
  Scenario scenario(std::string_view router) const {
    Scenario s = fixtures::scenarios()[GetParam().scenario].scenario;
    for (serve::Pool& pool : s.deployment.pools) pool.engine = GetParam().engine;
    s.deployment.router.policy = router;
    return s;
  }
};

TEST_P(Laws, hold_for_every_router) {
  for (const std::string& router : serve::router_names()) {
    SCOPED_TRACE(router);
    Scenario s = scenario(router);
    const RunResult macro = fixtures::must_run(s);
    check_records(macro);
    check_drained(macro);
    check_little(macro);
    check_finite(macro);
    s.execution = Execution::plain;
    check_same(macro, fixtures::must_run(s));
    if (HasFatalFailure()) return;
  }
}

TEST_P(Laws, same_seed_same_result_and_another_seed_another) {
  Scenario s = scenario("kv-aware");
  const RunResult a = fixtures::must_run(s), b = fixtures::must_run(s);
  check_same(a, b);
  EXPECT_EQ(a.scenario_yaml, b.scenario_yaml);
  EXPECT_EQ(a.events, b.events);
  s.seed = 77;
  EXPECT_NE(a.digest, fixtures::must_run(s).digest);
}

TEST_P(Laws, another_router_leaves_arrivals_and_lengths_alone) {
  if (fixtures::scenarios()[GetParam().scenario].closed) return;  // there they follow the answers
  const RunResult a = fixtures::must_run(scenario("round-robin"));
  for (const std::string& router : serve::router_names()) {
    const RunResult b = fixtures::must_run(scenario(router));
    ASSERT_EQ(a.records.size(), b.records.size()) << router;
    std::vector<std::array<std::int64_t, 4>> of_a, of_b;
    for (std::size_t i = 0; i < a.records.size(); ++i)
      for (auto [rows, r] : {std::pair{&of_a, &a.records[i]}, std::pair{&of_b, &b.records[i]}})
        rows->push_back({r->id, r->arrival_ns, r->isl, r->osl});
    std::sort(of_a.begin(), of_a.end());
    std::sort(of_b.begin(), of_b.end());
    EXPECT_EQ(of_a, of_b) << router;
  }
}

// The scenarios do what they are there for: otherwise the laws above say little.
TEST_P(Laws, are_put_to_the_test) {
  const std::string name = fixtures::scenarios()[GetParam().scenario].name;
  const RunResult r = fixtures::must_run(scenario("kv-aware"));
  std::int64_t preemptions = 0, reused = 0, from_host = 0;
  for (const PoolResult& p : r.pools) {
    preemptions += p.preemptions;
    reused += p.reused_tokens;
    const auto host = p.reused_by_tier.find("host");
    if (host != p.reused_by_tier.end()) from_host += host->second;
  }
  EXPECT_GT(r.metrics.counts.completed, 40);
  if (name == "pressure") {
    EXPECT_EQ(preemptions > 0, GetParam().engine != "trtllm-1.3");
  }
  if (name == "sessions" || name == "local") {
    EXPECT_GT(reused, 1000);
  }
  if (name == "tiers") {
    EXPECT_GT(from_host, 1000);
  }
  if (name == "back_pressure") {
    EXPECT_GT(r.transfers.wait_for_slot.max, 1e6);
  }
  if (name == "disaggregated" || name == "back_pressure") {
    EXPECT_EQ(r.transfers.count, r.metrics.counts.completed);
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (std::size_t i = 0; i < fixtures::scenarios().size(); ++i)
    for (const char* engine : {"trtllm-1.3", "sglang-0.5", "vllm-0.2x"}) all.push_back({i, engine});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Scenarios, Laws, testing::ValuesIn(cases()), [](const auto& of) {
  return fixtures::scenarios()[of.param.scenario].name + "_" + of.param.engine.substr(0, 4);
});

}  // namespace
}  // namespace racktwin::sim
