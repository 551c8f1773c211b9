// What the examples say of themselves at their heads, held against what they do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/cli.hpp"

namespace racktwin::cli {
namespace {

using Json = nlohmann::json;

Json summary(std::vector<std::string> arguments) {
  std::string text;
  Console console;
  console.out = [&](std::string_view part) {
    text += part;
    return true;
  };
  console.err = [&](std::string_view part) {
    text += part;
    return true;
  };
  arguments.insert(arguments.begin(), "run");
  arguments.push_back("--json");
  EXPECT_EQ(run_cli(arguments, console), exit_done) << text;
  return Json::parse(text);
}

double goodput(const std::string& scenario, const std::string& policy) {
  return summary({scenario, "--set", "router.policy=" + policy})["request_goodput"];
}

TEST(Examples, the_kv_aware_router_wins_where_prefixes_are_worth_keeping) {
  EXPECT_GT(goodput("router-kv-wins", "kv-aware"), 1.2 * goodput("router-kv-wins", "round-robin"));
}

TEST(Examples, the_kv_aware_router_loses_where_moving_a_conversation_costs_its_cache) {
  EXPECT_LT(1.2 * goodput("router-kv-loses", "kv-aware"), goodput("router-kv-loses", "session"));
  EXPECT_LT(1.2 * goodput("router-kv-loses", "kv-aware"),
            goodput("router-kv-loses", "cache-aware"));
}

TEST(Examples, draft_tokens_pay_at_low_concurrency) {
  const double with = summary({"mtp"})["median_tpot_ms"];
  const double without =
      summary({"mtp", "--set", "pools.0.speculation={draft_tokens: 0}"})["median_tpot_ms"];
  EXPECT_LT(1.5 * with, without);
  EXPECT_GT(2.9 * with, without);  // never more than the tokens that a step yields
}

TEST(Examples, bursts_cost_ttft_and_not_throughput) {
  const Json bursty = summary({"llama70b-h200"});
  const Json even = summary({"llama70b-h200", "--set",
                             "load={kind: open, rate: 9 /s, isl: {kind: "
                             "log-normal, mean: 1024, cv: 1, max: 8192}, "
                             "osl: {kind: log-normal, mean: 512, cv: 0.7, "
                             "max: 4096}}"});
  EXPECT_GT(bursty["p99_ttft_ms"], 1.2 * even["p99_ttft_ms"].get<double>());
  EXPECT_NEAR(bursty["output_throughput"], even["output_throughput"].get<double>(),
              0.15 * even["output_throughput"].get<double>());
}

TEST(Examples, overload_saturates_and_does_not_collapse) {
  const double at_overload = summary({"overload"})["output_throughput"];
  const double far_beyond = summary({"overload", "--set", "load.rate=60 /s"})["output_throughput"];
  EXPECT_GT(far_beyond, 0.9 * at_overload);
}

TEST(Examples, the_generated_conversations_look_like_the_trace) {
  const Json json = summary({"mooncake-8"});
  EXPECT_NEAR(json["completed"], 12031, 0.1 * 12031);
  EXPECT_NEAR(json["input_length"]["mean"], 12035, 0.1 * 12035);
  EXPECT_NEAR(json["output_length"]["mean"], 343, 0.05 * 343);
  EXPECT_NEAR(json["pools"][0]["reuse"], 0.366, 0.05);
}

}  // namespace
}  // namespace racktwin::cli
