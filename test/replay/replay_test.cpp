// A run is the replay of its own recorded trace: what was recorded, written as a trace and run
// again, gives the same token times.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/rng.hpp"
#include "serve/router.hpp"
#include "sim/fixtures.hpp"

namespace racktwin::sim {
namespace {

class File {
 public:
  explicit File(const std::string& text) {
    const auto folder = std::filesystem::temp_directory_path();
    path_ =
        (folder / fmt::format("racktwin_replay_{}_{}.jsonl", mix(std::hash<std::string>{}(text)),
                              static_cast<const void*>(this)))
            .string();
    std::ofstream(path_) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<Record> by_id(const RunResult& r) {
  std::vector<Record> records = r.records;
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.id < b.id; });
  return records;
}

// The first arrival is the start of a replay.
void expect_same_times(const RunResult& recorded, const RunResult& replayed) {
  const auto a = by_id(recorded), b = by_id(replayed);
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  const std::int64_t shift = a[0].arrival_ns - b[0].arrival_ns;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].arrival_ns, b[i].arrival_ns + shift) << i;
    ASSERT_EQ(a[i].isl, b[i].isl) << i;
    ASSERT_EQ(a[i].osl, b[i].osl) << i;
    ASSERT_EQ(a[i].scheduled_ns, b[i].scheduled_ns + shift) << i;
    ASSERT_EQ(a[i].first_token_ns, b[i].first_token_ns + shift) << i;
    ASSERT_EQ(a[i].last_token_ns, b[i].last_token_ns + shift) << i;
    ASSERT_EQ(a[i].reused_tokens, b[i].reused_tokens) << i;
    ASSERT_EQ(a[i].preemptions, b[i].preemptions) << i;
  }
  EXPECT_EQ(recorded.metrics.itl.histogram, replayed.metrics.itl.histogram);
  EXPECT_EQ(recorded.steps, replayed.steps);
}

std::string in_nanoseconds(const RunResult& r) {
  std::string text;
  for (const Record& q : by_id(r))
    text += fmt::format("{{\"input_toks\": {}, \"output_toks\": {}, \"arrival_time_ns\": {}}}\n",
                        q.isl, q.osl, q.arrival_ns);
  return text;
}

class Replay : public testing::TestWithParam<std::size_t> {};

// The limit on output is not in the trace, so that engines which look at it are left out.
TEST_P(Replay, of_a_generated_load_gives_the_same_token_times) {
  const fixtures::Named& named = fixtures::scenarios()[GetParam()];
  Scenario s = named.scenario;
  for (serve::Pool& pool : s.deployment.pools) pool.engine = "vllm-0.2x";
  const RunResult recorded = fixtures::must_run(s);
  const File file(in_nanoseconds(recorded));
  s.load = TraceLoad{.path = file.path(), .options = {}};
  const RunResult replayed = fixtures::must_run(s);
  ASSERT_TRUE(replayed.trace.has_value());
  EXPECT_EQ(replayed.trace->format, "llmservingsim");
  expect_same_times(recorded, replayed);
}
std::vector<std::size_t> without_names() {  // prompts with names: see the test below
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < fixtures::scenarios().size(); ++i) {
    const auto& load = std::get<workload::Load>(fixtures::scenarios()[i].scenario.load);
    if (!std::holds_alternative<workload::Sessions>(load)) found.push_back(i);
  }
  return found;
}
INSTANTIATE_TEST_SUITE_P(Scenarios, Replay, testing::ValuesIn(without_names()),
                         [](const auto& of) { return fixtures::scenarios()[of.param].name; });

struct Row {
  std::int64_t ms, isl, osl;
  std::vector<std::int64_t> hashes;
};
std::string mooncake(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& r : rows)
    text += fmt::format(
        "{{\"timestamp\": {}, \"input_length\": {}, \"output_length\": {}, \"hash_ids\": [{}]}}\n",
        r.ms, r.isl, r.osl, fmt::join(r.hashes, ", "));
  return text;
}

// Prompts that grow out of one another, in the shape of the Mooncake traces.
std::vector<Row> conversations() {
  Rng rng(11, "conversations");
  std::vector<Row> rows;
  std::vector<std::vector<std::int64_t>> open;
  std::int64_t ms = 0, fresh = 100;
  for (int i = 0; i < 200; ++i) {
    ms += static_cast<std::int64_t>(rng.below(40));
    if (open.size() < 10 || rng.below(3) == 0) open.push_back({0, 1});
    auto& hashes = open[rng.below(open.size())];
    for (std::uint64_t k = 1 + rng.below(3); k > 0; --k) hashes.push_back(fresh++);
    const auto blocks = static_cast<std::int64_t>(hashes.size());
    rows.push_back({ms, 512 * blocks, 1 + static_cast<std::int64_t>(rng.below(120)), hashes});
  }
  return rows;
}

// Recorded and written again with the names of its prompts, a trace is itself.
TEST(Replay, of_a_replay_gives_the_same_token_times_with_every_router_and_engine) {
  const std::vector<Row> rows = conversations();
  const File first(mooncake(rows));
  for (const std::string& router : serve::router_names())
    for (const char* engine : {"vllm-0.2x", "sglang-0.5", "trtllm-1.3"}) {
      SCOPED_TRACE(router + " " + engine);
      Scenario s = fixtures::dense();
      s.deployment.pools[0].engine = engine;
      s.deployment.pools[0].kv_blocks = 40'000 / (engine[0] == 'v' ? 16 : 64);
      s.deployment.router.policy = router;
      s.load = TraceLoad{.path = first.path(), .options = {}};
      const RunResult recorded = fixtures::must_run(s);
      EXPECT_GT(recorded.pools[0].reused_tokens, 10'000);
      std::vector<Row> again;
      for (const Record& q : by_id(recorded))
        again.push_back({q.arrival_ns / 1'000'000, q.isl, q.osl, rows[q.id].hashes});
      const File second(mooncake(again));
      s.load = TraceLoad{.path = second.path(), .options = {}};
      expect_same_times(recorded, fixtures::must_run(s));
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace racktwin::sim
