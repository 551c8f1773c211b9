// Every scenario of scenarios/, shortened: its summary as text against scenarios/NAME.expected,
// and beside it the laws that a golden file alone would let pass.
//
// UPDATE_GOLDEN=1 writes the files anew; read the difference before you keep it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "base/file.hpp"
#include "catalog/catalog.hpp"
#include "report/report.hpp"
#include "sim/run.hpp"

namespace racktwin {
namespace {

const catalog::Catalog& shipped() {
  static const catalog::Catalog catalog = [] {
    auto loaded = catalog::Catalog::built_in();
    RACKTWIN_CHECK(loaded.ok());
    return std::move(loaded).value();
  }();
  return catalog;
}

// Long enough that caches fill and queues build, short enough for a sanitizer.
sim::Scenario shortened(const std::string& name) {
  static const std::map<std::string, std::string> horizons = {{"default", "500 ms"},
                                                              {"day", "500 ms"}};
  const auto own = horizons.find(name);
  const std::string horizon = own == horizons.end() ? "120 s" : own->second;
  auto scenario = sim::load_scenario(name, {"horizon=" + horizon, "warmup=0 s"});
  EXPECT_TRUE(scenario.ok()) << scenario.error().text();
  return std::move(scenario).value();
}

sim::RunResult run(const sim::Scenario& scenario) {
  auto result = sim::run(scenario, shipped());
  EXPECT_TRUE(result.ok()) << result.error().text();
  return std::move(result).value();
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, the_summary_is_the_one_kept) {
  const std::string path = RACKTWIN_SOURCE_DIR "/scenarios/" + GetParam() + ".expected";
  const std::string text = report::summary_text(run(shortened(GetParam())));
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file(path, text).ok());
    return;
  }
  const auto kept = read_file(path);
  ASSERT_TRUE(kept.ok()) << kept.error().text() << "; UPDATE_GOLDEN=1 writes it";
  EXPECT_EQ(text, kept.value()) << "if this is meant, UPDATE_GOLDEN=1 writes it anew";
}

TEST_P(Golden, single_steps_give_the_same_request_times_as_macro_steps) {
  sim::Scenario scenario = shortened(GetParam());
  scenario.records = true;
  scenario.execution = sim::Execution::macro;
  const sim::RunResult macro = run(scenario);
  scenario.execution = sim::Execution::plain;
  const sim::RunResult plain = run(scenario);
  ASSERT_GT(plain.metrics.counts.arrived, 0);
  EXPECT_EQ(macro.steps, plain.steps);
  EXPECT_LE(macro.events, plain.events);
  EXPECT_TRUE(report::requests_csv(macro) == report::requests_csv(plain));
  EXPECT_EQ(macro.metrics.itl.histogram, plain.metrics.itl.histogram);
}

TEST_P(Golden, requests_are_conserved_and_the_bytes_repeat) {
  const sim::Scenario scenario = shortened(GetParam());
  const sim::RunResult one = run(scenario), other = run(scenario);
  const sim::Counts& counts = one.metrics.counts;
  EXPECT_EQ(counts.arrived, counts.completed + counts.shed + counts.unfinished);
  EXPECT_EQ(one.digest, other.digest);
  EXPECT_EQ(report::summary_json(one), report::summary_json(other));
  for (const sim::PoolResult& pool : one.pools) {
    const sim::TimeSplit& t = pool.time;
    EXPECT_NEAR(t.compute + t.memory + t.communication + t.overhead + t.idle, 1, 1e-9) << pool.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Golden, testing::ValuesIn(sim::scenario_names()),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (char& c : name)
                             if (c == '-' || c == '.') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace racktwin
