// What single runs must show: saturation, refusals, reasons, the ends of a run.
#include "sim/run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/fixtures.hpp"

namespace racktwin::sim {
namespace {

using fixtures::must_run;
using testing::HasSubstr;

std::string refusal(const Scenario& s) {
  const auto result = run(s, fixtures::built_in());
  EXPECT_FALSE(result.ok());
  return result.ok() ? "" : result.error().text();
}

// One replica of Llama 3.1 8B with KV for about 68 requests at their longest.
Scenario saturated(std::int64_t concurrency, const std::string& engine) {
  Scenario s = fixtures::dense();
  s.horizon = 1000 * unit::sec;
  s.series_interval = unit::sec;
  s.deployment.pools = {{.name = "serve", .engine = engine}};
  const int block = engine == "vllm-0.2x" ? 16 : engine == "trtllm-1.3" ? 32 : 64;
  s.deployment.pools[0].kv_blocks = 68 * (1024 + 256) / block;
  s.load = workload::ClosedLoop{.concurrency = concurrency,
                                .requests = 4 * concurrency + 2000,
                                .isl = {.mean = 1024},
                                .osl = {.mean = 256}};
  return s;
}

TEST(Saturation, throughput_does_not_grow_by_preemption) {
  for (const char* engine : {"vllm-0.2x", "sglang-0.5", "trtllm-1.3"}) {
    SCOPED_TRACE(engine);
    const auto rate = [&](std::int64_t concurrency) {
      const RunResult r = must_run(saturated(concurrency, engine));
      EXPECT_EQ(r.metrics.counts.completed, r.metrics.counts.arrived);
      return r.metrics.output_throughput.in(unit::tok / unit::sec);
    };
    const double at_16 = rate(16), at_256 = rate(256), at_1024 = rate(1024);
    EXPECT_GT(at_256, 1.5 * at_16);
    EXPECT_NEAR(at_1024, at_256, 0.25 * at_256);
  }
}

TEST(ClosedLoop, the_next_request_comes_when_one_ends_and_not_when_a_sample_is_taken) {
  Scenario s = fixtures::dense();
  s.deployment.pools[0].replicas = 1;
  s.load = workload::ClosedLoop{
      .concurrency = 1, .requests = 20, .isl = {.mean = 100}, .osl = {.mean = 20}};
  s.horizon = 1000 * unit::sec;
  for (const Seconds interval : {100 * unit::ms, 10 * unit::sec}) {
    s.series_interval = interval;
    const RunResult r = must_run(s);
    ASSERT_EQ(r.records.size(), 20u);
    for (std::size_t i = 1; i < 20; ++i)
      EXPECT_EQ(r.records[i].arrival_ns, r.records[i - 1].last_token_ns);
    EXPECT_NEAR(r.metrics.concurrency_mean, 1, 1e-9);
  }
}

TEST(Series, its_interval_changes_no_token_and_no_figure) {
  Scenario s = fixtures::disaggregated();
  const RunResult a = must_run(s);
  s.series_interval = 7 * unit::ms;
  const RunResult b = must_run(s);
  EXPECT_EQ(a.digest, b.digest);
  EXPECT_EQ(a.metrics.duration, b.metrics.duration);
  EXPECT_EQ(a.metrics.concurrency_mean, b.metrics.concurrency_mean);
  EXPECT_EQ(a.metrics.output_throughput, b.metrics.output_throughput);
}

// A prompt whose step is longer than many samples is no standstill.
TEST(StandStill, a_long_step_between_many_samples_is_none) {
  Scenario s = fixtures::dense();
  s.deployment.pools[0].replicas = 1;
  s.deployment.pools[0].engine = "trtllm-1.3";
  s.series_interval = unit::ms;
  s.load = workload::Burst{.requests = 1, .isl = {.mean = 60000}, .osl = {.mean = 3}};
  const RunResult r = must_run(s);
  EXPECT_EQ(r.metrics.counts.completed, 1);
  EXPECT_GT(r.metrics.ttft.p50, 100e6);
}

TEST(Shedding, counts_the_reason) {
  Scenario s = fixtures::dense();
  s.deployment.pools[0].kv_blocks = 100;
  s.load = workload::Burst{.requests = 5, .isl = {.mean = 5000}, .osl = {.mean = 3}};
  const RunResult r = must_run(s);
  EXPECT_EQ(r.metrics.counts.shed, 5);
  EXPECT_THAT(r.metrics.counts.shed_reasons,
              testing::ElementsAre(testing::Pair(HasSubstr("larger than the KV cache"), 5)));
  s.deployment.pools[0].kv_blocks.reset();
  s.load = workload::Burst{.requests = 5, .isl = {.mean = 131072}, .osl = {.mean = 3}};
  EXPECT_THAT(must_run(s).metrics.counts.shed_reasons,
              testing::ElementsAre(testing::Pair(HasSubstr("context"), 5)));
}

// A client that asks again for what is always refused must not hold up the clock.
TEST(Shedding, a_closed_loop_of_requests_that_never_fit_comes_to_an_end) {
  Scenario s = fixtures::dense();
  s.deployment.pools[0].kv_blocks = 100;
  s.horizon = 500 * unit::ms;
  s.load = workload::ClosedLoop{.concurrency = 2, .isl = {.mean = 5000}, .osl = {.mean = 3}};
  const RunResult r = must_run(s);
  EXPECT_EQ(r.metrics.counts.shed, r.metrics.counts.arrived);
  EXPECT_LT(r.metrics.counts.arrived, 1000);
}

TEST(OneToken, has_no_tpot) {
  Scenario s = fixtures::dense();
  s.load = workload::Burst{.requests = 8, .isl = {.mean = 100}, .osl = {.mean = 1}};
  for (const bool disaggregated : {false, true}) {
    if (disaggregated) {
      const auto load = s.load;
      s = fixtures::disaggregated();
      s.load = load;
    }
    const RunResult r = must_run(s);
    EXPECT_EQ(r.metrics.counts.completed, 8);
    EXPECT_EQ(r.metrics.tpot.histogram.count(), 0);
    EXPECT_EQ(r.metrics.itl.histogram.count(), 0);
    for (const Record& q : r.records) EXPECT_FALSE(q.tpot().has_value());
  }
}

TEST(Capacity, more_replicas_never_lower_goodput) {
  for (const char* engine : {"vllm-0.2x", "sglang-0.5", "trtllm-1.3"}) {
    SCOPED_TRACE(engine);
    Scenario s = fixtures::dense();
    s.horizon = 10 * unit::sec;
    s.load = fixtures::open_loop(60, fixtures::lengths(900, 6000), fixtures::lengths(150, 800));
    s.slos = {{.ttft = 300 * unit::ms, .tpot = 15 * unit::ms}};
    std::int64_t before = -1;
    for (const int replicas : {1, 2, 4, 8}) {
      s.deployment.pools = {{.name = "serve", .replicas = replicas, .engine = engine}};
      const std::int64_t good = must_run(s).metrics.slos[0].good;
      EXPECT_GE(good, before) << replicas;
      before = good;
    }
    EXPECT_GT(before, 500);
  }
}

TEST(Refusal, a_model_too_large_for_its_gpus_comes_with_the_breakdown) {
  Scenario s = fixtures::dense();
  s.model = "llama-3.1-70b";
  s.deployment.pools[0].parallelism.tp = 1;
  const std::string text = refusal(s);
  for (const char* part : {"serve", "weights", "activations", "GiB"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Refusal, shapes_and_names_that_cannot_be_are_told_with_what_can) {
  Scenario s = fixtures::dense();
  s.deployment.pools[0].parallelism.tp = 3;
  EXPECT_THAT(refusal(s), HasSubstr("heads"));
  s = fixtures::dense();
  s.deployment.pools[0].parallelism.ep = 2;
  EXPECT_THAT(refusal(s), HasSubstr("ep"));
  s = fixtures::dense();
  s.deployment.pools[0].replicas = 33;
  EXPECT_THAT(refusal(s), testing::AllOf(HasSubstr("33"), HasSubstr("32"), HasSubstr("GPUs")));
  s = fixtures::dense();
  s.deployment.router.policy = "least-load";
  EXPECT_THAT(refusal(s), HasSubstr("least-loaded"));
  s = fixtures::dense();
  s.model = "llama-3.1-8";
  EXPECT_THAT(refusal(s), HasSubstr("llama-3.1-8b"));
}

TEST(Drain, a_run_that_is_cut_counts_who_is_left) {
  Scenario s = fixtures::dense();
  s.drain = 100 * unit::ms;
  s.load = workload::Burst{.requests = 300, .isl = {.mean = 2000}, .osl = {.mean = 500}};
  const RunResult r = must_run(s);
  EXPECT_GT(r.metrics.counts.unfinished, 0);
  EXPECT_EQ(r.metrics.counts.arrived, 300);
  EXPECT_THAT(r.warnings, testing::Contains(HasSubstr("unfinished")));
}

TEST(Interruption, gives_what_is_known_and_says_so) {
  RunOptions options;
  int calls = 0;
  options.progress = [&](const Progress& p) {
    EXPECT_GE(p.arrived, p.completed);
    return ++calls < 5;
  };
  const auto result = run(fixtures::dense(), fixtures::built_in(), options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.value().partial);
  EXPECT_THAT(result.value().partial_reason, HasSubstr("0.5"));
  const Counts& c = result.value().metrics.counts;
  EXPECT_EQ(c.arrived, c.completed + c.shed + c.unfinished);
}

}  // namespace
}  // namespace racktwin::sim
