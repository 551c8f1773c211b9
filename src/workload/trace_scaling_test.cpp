// Scaling: what copies, compression and thinning do, and what they leave alone; and the shared
// traces, against the statistics published of them.
#include <cmath>
#include <filesystem>
#include <set>

#include "workload/trace_test_tools.hpp"

namespace racktwin::workload {
namespace {

// Bursts of five every ten seconds, two prompts that share their first block.
std::string bursty() {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "{\"timestamp\": " + std::to_string(i / 5 * 10000 + i % 5) +
            ", \"input_length\": 1000, \"output_length\": 50, \"hash_ids\": [0, " +
            std::to_string(1 + i % 40) + "]}\n";
  return text;
}

TEST(Scaling, copies_multiply_the_requests_and_share_no_block) {
  Trace one = opened(bursty()), four = opened(bursty(), {.scaling = {.copies = 4}});
  const auto a = serve_all(*one.source, unit::sec), b = serve_all(*four.source, unit::sec);
  ASSERT_EQ(b.size(), 4 * a.size());
  std::set<std::uint64_t> ids;
  for (const Served& served : b)
    ids.insert(served.request.blocks.begin(), served.request.blocks.end());
  EXPECT_EQ(ids.size(), 4u * 41);
  EXPECT_EQ(four.info.stats.requests, 400);
  EXPECT_EQ(four.info.scaled.requests, 1600);
  // Copy 0 is the trace itself.
  std::size_t found = 0;
  for (const Served& served : b)
    if (found < a.size() && served.request.blocks == a[found].request.blocks &&
        served.request.arrival == a[found].request.arrival)
      ++found;
  EXPECT_EQ(found, a.size());
}

TEST(Scaling, superposition_lowers_the_cv_and_keeps_reuse_and_lengths) {
  Trace trace = opened(bursty(), {.scaling = {.copies = 30}});
  EXPECT_NEAR(trace.info.stats.cv, 2, 0.02);  // four gaps of 1 ms, one of 10 s
  EXPECT_LT(trace.info.scaled.dispersion_10s, trace.info.stats.dispersion_1s);
  EXPECT_NEAR(*trace.info.scaled.reuse, *trace.info.stats.reuse, 0.02);
  EXPECT_EQ(trace.info.scaled.isl.mean, trace.info.stats.isl.mean);
  EXPECT_NEAR(trace.info.scaled.span.in(unit::sec) / trace.info.stats.span.in(unit::sec), 1, 0.02);
}

TEST(Scaling, compression_keeps_the_cv_and_the_order_and_divides_the_span) {
  Trace plain = opened(bursty()), fast = opened(bursty(), {.scaling = {.compress = 8}});
  EXPECT_NEAR(fast.info.scaled.cv, plain.info.stats.cv, 1e-6);
  EXPECT_NEAR(fast.info.scaled.span.in(unit::sec) * 8, plain.info.stats.span.in(unit::sec), 1e-6);
  const auto a = serve_all(*plain.source, unit::ms), b = serve_all(*fast.source, unit::ms);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].request.blocks, b[i].request.blocks);
    ASSERT_NEAR(a[i].at() / 8, b[i].at(), 1e-9);
  }
}

TEST(Scaling, thinning_keeps_requests_by_chance_and_sessions_whole) {
  Trace trace = opened(bursty(), {.scaling = {.keep = 0.25}});
  EXPECT_NEAR(static_cast<double>(trace.info.scaled.requests), 100, 30);
  std::string sessions;
  for (int i = 0; i < 300; ++i)
    for (int turn = 0; turn < 3; ++turn)
      sessions += "{\"session_id\": " + std::to_string(i) +
                  ", \"timestamp\": " + std::to_string(i * 100 + turn) +
                  ", \"input_length\": 10, \"output_length\": 5}\n";
  Trace thin = opened(sessions, {.scaling = {.keep = 0.5}});
  std::map<std::uint32_t, int> turns;
  for (const Served& served : serve_all(*thin.source, unit::ms))
    ++turns[served.request.session->index];
  EXPECT_NEAR(static_cast<double>(turns.size()), 150, 40);
  for (const auto& [id, count] : turns) EXPECT_EQ(count, 3);
  EXPECT_EQ(thin.info.scaled.sessions, static_cast<std::int64_t>(turns.size()));
}

TEST(Scaling, copied_sessions_are_sessions_of_their_own_and_still_wait) {
  const std::string text =
      R"({"session_id": "a", "timestamp": 0, "input_length": 10, "output_length": 5}
{"session_id": "a", "delay": 1000, "input_length": 20, "output_length": 5}
{"session_id": "b", "timestamp": 60000, "input_length": 10, "output_length": 5}
)";
  Trace trace = opened(text, {.scaling = {.copies = 3, .compress = 2}});
  EXPECT_EQ(trace.info.scaled.sessions, 6);
  std::map<std::uint32_t, std::vector<Served>> sessions;
  for (const Served& served : serve_all(*trace.source, 4 * unit::sec))
    sessions[served.request.session->index].push_back(served);
  EXPECT_EQ(sessions.size(), 6u);
  for (const auto& [id, turns] : sessions) {
    if (turns.size() == 2) {
      EXPECT_NEAR(turns[1].at() - turns[0].at(), 4.5, 1e-6);
    }
  }
}

TEST(Scaling, the_limit_takes_the_first_in_time) {
  Trace trace = opened(bursty(), {.limit = 7});
  EXPECT_EQ(arrivals(serve_all(*trace.source, unit::ms)),
            (std::vector<double>{0, 0.001, 0.002, 0.003, 0.004, 10, 10.001}));
}

TEST(Scaling, same_seed_same_copies_other_seed_others) {
  const auto digest = [](std::uint64_t seed) {
    Trace trace = opened(bursty(), {.scaling = {.copies = 3, .keep = 0.5}, .seed = seed});
    std::int64_t sum = 0;
    for (const Served& served : serve_all(*trace.source, unit::ms))
      sum = sum * 31 % 1000000007 + served.request.arrival.ns() % 1000000007;
    return sum;
  };
  EXPECT_EQ(digest(1), digest(1));
  EXPECT_NE(digest(1), digest(2));
}

// Real traces, where they lie beside the project. The figures were computed apart from this
// code; percentiles may differ by the neighbouring row.
std::string shared(const std::string& file) {
  return std::string(RACKTWIN_SOURCE_DIR) + "/../shared/traces/" + file;
}

struct Known {
  std::string file, format;
  std::int64_t requests;
  double span_s, cv, idc_1s, idc_10s, idc_60s;
  double isl[5], osl[5];  // mean, p50, p95, p99, max
  double reuse;           // negative: none
};

const Known known[] = {
    {"azure2023/AzureLLMInferenceTrace_code.csv",
     "azure-2023",
     8819,
     3436,
     13.15,
     13.18,
     71.3,
     160.5,
     {2048, 1469, 7303, 7436, 7437},
     {27.9, 13, 90, 252, 1899},
     -1},
    {"azure2023/AzureLLMInferenceTrace_conv.csv",
     "azure-2023",
     19366,
     3502,
     1.094,
     1.39,
     4.0,
     20.6,
     {1155, 1020, 4083, 4142, 14050},
     {211, 129, 451, 601, 1000},
     -1},
    {"mooncake/conversation_trace.jsonl",
     "mooncake",
     12031,
     3537,
     3.03,
     7.89,
     2.09,
     2.85,
     {12035, 6909, 39551, 85400, 126195},
     {343, 350, 698, 1119, 2000},
     0.366},
    {"vidur/splitwise_code.csv",
     "vidur",
     8819,
     3436,
     13.15,
     13.18,
     71.3,
     160.5,
     {2048, 1469, 7303, 7436, 7437},
     {27.9, 13, 90, 252, 1899},
     -1},
    {"vidur/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv",
     "vidur",
     28257,
     0,
     0,
     0,
     0,
     0,
     {2588, 2730, 3813, 3933, 4054},
     {291, 167, 736, 3271, 4056},
     -1},
    {"agentic-coding-weka/compact.jsonl",
     "weka",
     37994,
     440251,
     -1,
     -1,
     -1,
     -1,
     {122646, 104058, 294776, 507899, 894371},
     {438.5, 215, 1549, 3663, 18195},
     0.963},
};

class SharedTrace : public ::testing::TestWithParam<Known> {};

TEST_P(SharedTrace, has_the_published_statistics) {
  const Known& want = GetParam();
  if (!std::filesystem::exists(shared(want.file)))
    GTEST_SKIP() << "the shared traces are not beside the project";
  const auto info = inspect_trace(shared(want.file), {});
  ASSERT_TRUE(info.ok()) << info.error().text();
  const TraceStats& stats = info.value().stats;
  EXPECT_EQ(info.value().format, want.format);
  EXPECT_EQ(stats.requests, want.requests);
  EXPECT_NEAR(stats.span.in(unit::sec), want.span_s, 1);
  const std::pair<double, double> pairs[] = {{stats.cv, want.cv},
                                             {stats.dispersion_1s, want.idc_1s},
                                             {stats.dispersion_10s, want.idc_10s},
                                             {stats.dispersion_60s, want.idc_60s}};
  for (const auto& [have, wanted] : pairs)
    if (wanted >= 0) {
      EXPECT_NEAR(have, wanted, 0.005 * wanted);
    }
  const auto same = [](const TraceStats::Length& have, const double(&wanted)[5]) {
    EXPECT_NEAR(have.mean, wanted[0], 0.002 * wanted[0]);
    EXPECT_NEAR(static_cast<double>(have.p50), wanted[1], 1);
    EXPECT_NEAR(static_cast<double>(have.p95), wanted[2], 0.002 * wanted[2] + 1);
    EXPECT_NEAR(static_cast<double>(have.p99), wanted[3], 0.002 * wanted[3] + 1);
    EXPECT_EQ(static_cast<double>(have.max), wanted[4]);
  };
  same(stats.isl, want.isl);
  same(stats.osl, want.osl);
  if (want.reuse < 0) {
    EXPECT_FALSE(stats.reuse.has_value());
  } else {
    EXPECT_NEAR(stats.reuse.value_or(0), want.reuse, 0.0006);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SharedTrace, ::testing::ValuesIn(known), [](const auto& instance) {
  std::string name = instance.param.file.substr(instance.param.file.find_last_of('/') + 1);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

TEST(SharedTraces, every_sample_is_read_or_refused_with_the_reason) {
  if (!std::filesystem::exists(shared("")))
    GTEST_SKIP() << "the shared traces are not beside the project";
  const std::pair<std::string, std::string> formats[] = {
      {"azure2024/format_sample_code.csv", "azure-2024"},
      {"azure2024/format_sample_conv.csv", "azure-2024"},
      {"azure2024/format_sample_multimodal.csv", "azure-multimodal"},
      {"mooncake/arxiv_trace_sample.jsonl", "mooncake"},
      {"burstgpt/format_sample.csv", "burstgpt"},
      {"qwen-bailian/format_sample.jsonl", "qwen-bailian"},
      {"servegen-offline/format_sample.jsonl", "servegen-offline"},
      {"vidur/splitwise_conv.csv", "vidur"},
      {"agentic-coding-weka/raw_sample", "weka"},
      {"otel-agentic/test_traces/simple", "otel-agentic"},
      {"otel-agentic/test_traces/advanced", "otel-agentic"}};
  for (const auto& [file, format] : formats) {
    auto trace = open_trace(shared(file), {});
    ASSERT_TRUE(trace.ok()) << trace.error().text();
    EXPECT_EQ(trace.value().info.format, format);
    const auto all = serve_all(*trace.value().source, unit::sec);
    EXPECT_EQ(static_cast<std::int64_t>(all.size()), trace.value().info.scaled.requests) << file;
  }
}

TEST(SharedTraces, servegen_reasoning_has_the_published_rate_and_lengths) {
  if (!std::filesystem::exists(shared("servegen/reason/deepseek-r1")))
    GTEST_SKIP() << "the shared traces are not beside the project";
  const auto info = inspect_trace(shared("servegen/reason/deepseek-r1"), {});
  ASSERT_TRUE(info.ok()) << info.error().text();
  const TraceStats& stats = info.value().stats;
  // One day drawn of bursty clients: the count moves by a few per cent with the seed.
  EXPECT_NEAR(static_cast<double>(stats.requests) / (16.0147 * 86400), 1, 0.05);
  EXPECT_NEAR(stats.isl.mean / 1268, 1, 0.05);
  EXPECT_NEAR(stats.osl.mean / 1527, 1, 0.05);
  EXPECT_EQ(stats.osl.max, 32768);
}

}  // namespace
}  // namespace racktwin::workload
