// Agentic sessions (WEKA) and OpenTelemetry spans: who waits for whom, and for how long.
#include <fmt/format.h>

#include <set>

#include "workload/trace_test_tools.hpp"

namespace racktwin::workload {
namespace {

std::string ids(int from, int to) {
  std::string list = "[";
  for (int i = from; i <= to; ++i) list += (i > from ? "," : "") + std::to_string(i);
  return list + "]";
}

std::string call(double t, int in, int out, const std::string& hash_ids, double api, double think) {
  return fmt::format(
      R"({{"t":{},"type":"n","model":"m","in":{},"out":{},"hash_ids":{},"api_time":{},"think_time":{}}})",
      t, in, out, hash_ids, api, think);
}

std::string session(const std::string& id, const std::string& requests,
                    const std::string& scope = "local") {
  return R"({"id":")" + id + R"(","models":["m"],"block_size":64,"hash_id_scope":")" + scope +
         R"(","tool_tokens":9,"system_tokens":2,"requests":[)" + requests + "]}";
}

TEST(Weka, a_turn_waits_for_the_answer_and_the_think_time) {
  Trace trace = opened(session("a", call(0, 128, 10, ids(1, 2), 5, 0) + "," +
                                        call(8, 260, 10, ids(1, 4), 2, 3) + "," +
                                        call(20, 320, 10, ids(1, 5), 2, 10)));
  EXPECT_EQ(trace.info.format, "weka");
  EXPECT_EQ(trace.info.time_unit, "s");
  EXPECT_EQ(trace.info.block_tokens, 64);
  EXPECT_TRUE(trace.info.closed_loop);
  EXPECT_DOUBLE_EQ(*trace.info.stats.reuse, 6.0 / 11);
  const auto all = serve_all(*trace.source, unit::sec);
  EXPECT_EQ(arrivals(all), (std::vector<double>{0, 4, 15}));
  EXPECT_EQ(all[1].request.blocks.size(), 4u);
  EXPECT_EQ(all[1].request.blocks[1], all[0].request.blocks[1]);
}

TEST(Weka, as_stamped_it_comes_when_it_came) {
  const std::string text =
      session("a", call(0, 128, 10, ids(1, 2), 5, 0) + "," + call(8, 260, 10, ids(1, 4), 2, 3));
  Trace trace = opened(text, {.closed_loop_sessions = false});
  EXPECT_FALSE(trace.info.closed_loop);
  EXPECT_EQ(arrivals(serve_all(*trace.source, 60 * unit::sec)), (std::vector<double>{0, 8}));
}

TEST(Weka, block_counts_may_be_rounded_down_or_up_and_no_other_way) {
  for (const int last : {2, 3})
    EXPECT_EQ(opened(session("a", call(0, 130, 1, ids(1, last), 1, 0))).info.stats.requests, 1);
  EXPECT_EQ(refusal(session("a", call(0, 130, 1, ids(1, 4), 1, 0))),
            "t:1: request 1 of the session has 4 hash ids of 64 tokens, which stand for 193 to 256 "
            "tokens, and input_length 130");
}

TEST(Weka, local_ids_are_shared_within_a_session_only_and_global_ones_between) {
  const std::string one = call(0, 128, 1, ids(1, 2), 1, 0);
  Trace local = opened(session("a", one) + "\n" + session("b", one) + "\n");
  EXPECT_EQ(local.info.stats.sessions, 2);
  EXPECT_DOUBLE_EQ(*local.info.stats.reuse, 0);
  Trace global = opened(session("a", one, "global") + "\n" + session("b", one, "global") + "\n");
  EXPECT_DOUBLE_EQ(*global.info.stats.reuse, 0.5);
}

TEST(Weka, requests_without_an_answer_are_counted_and_bridged) {
  Trace trace = opened(session("a", call(0, 128, 10, ids(1, 2), 5, 0) + "," +
                                        call(8, 128, 0, ids(1, 2), 0, 3) + "," +
                                        call(20, 128, 10, ids(1, 2), 2, 12)));
  EXPECT_EQ(trace.info.skipped.at("without output tokens"), 1);
  // Answered at 5 s as recorded, asked again at 20 s.
  EXPECT_EQ(arrivals(serve_all(*trace.source, unit::sec)), (std::vector<double>{0, 16}));
}

// The main line asks at 0 (answered at 5), again at 110. A sub-agent ran from 6 to 100: the
// entry is stamped at its end. Its calls: 0 to 4, 10 to 14 of its own time.
std::string with_agent(double entry_t, double inner_base, bool duration) {
  return session("a", call(0, 128, 10, ids(1, 2), 5, 0) + "," +
                          fmt::format(R"({{"t":{},"type":"subagent",{}"requests":[{},{}]}})",
                                      entry_t, duration ? R"("duration_ms":94000,)" : "",
                                      call(inner_base, 64, 10, ids(11, 11), 4, 0),
                                      call(inner_base + 10, 128, 10, ids(11, 12), 4, 6)) +
                          "," + call(110, 192, 10, ids(1, 3), 2, 105));
}

TEST(Weka, the_turn_after_a_sub_agent_waits_for_it) {
  Trace trace = opened(with_agent(100, 0, true));
  const auto all = serve_all(*trace.source, unit::sec);
  // 0..1 main; the agent 1 s later (6 - 5): 2..3, pause 6, 9..10. It ended at 20 as recorded
  // (6 + 10 + 4), the main line went on at 110: 90 s after. 10 + 90 = 100.
  EXPECT_EQ(arrivals(all), (std::vector<double>{0, 2, 9, 100}));
  EXPECT_EQ(all[3].request.isl, 192);
  EXPECT_EQ(all[1].request.session, all[0].request.session);
}

TEST(Weka, inner_times_from_the_start_of_the_session_mean_the_same) {
  Trace relative = opened(with_agent(100, 0, true)), absolute = opened(with_agent(100, 6, true));
  EXPECT_EQ(arrivals(serve_all(*relative.source, unit::sec)),
            arrivals(serve_all(*absolute.source, unit::sec)));
  // An entry stamped when the sub-agent began, without a duration.
  Trace begun = opened(with_agent(6, 0, false));
  EXPECT_EQ(arrivals(serve_all(*begun.source, unit::sec)), (std::vector<double>{0, 2, 9, 100}));
}

TEST(Weka, sub_agents_started_together_run_together) {
  const std::string agent = R"({"t":30,"type":"subagent","duration_ms":25000,"requests":[)" +
                            call(0, 64, 10, ids(11, 11), 20, 0) + "]}";
  Trace trace = opened(session("a", call(0, 128, 10, ids(1, 2), 5, 0) + "," + agent + "," + agent +
                                        "," + call(40, 192, 10, ids(1, 3), 2, 35)));
  EXPECT_EQ(arrivals(serve_all(*trace.source, 3 * unit::sec)),
            (std::vector<double>{0, 3, 3, 21}));  // ended at 25 as recorded, 15 s before the turn
}

TEST(Weka, the_compact_form_gives_the_hits_that_it_tells) {
  Trace trace = opened(
      R"({"id":"c","block_size":64,"tool_tokens":1,"system_tokens":2,"requests":[)"
      R"({"t":0.0,"type":"n","inp":640,"out":4,"think":0.0,"api":1.0,"blocks":10,"prefix_hit_blocks":0},)"
      R"({"t":5.0,"type":"n","inp":1300,"out":4,"think":4.0,"api":1.0,"blocks":20,"prefix_hit_blocks":7},)"
      R"({"t":9.0,"type":"n","inp":1280,"out":4,"think":3.0,"api":null,"blocks":20,"prefix_hit_blocks":18},)"
      R"({"t":30.0,"subagent":true,"n":1,"dur_ms":null,"requests":[{"t":0.0,"type":"n","inp":64,"out":4,"think":null,"api":2.0,"blocks":1,"prefix_hit_blocks":0}]},)"
      R"({"t":50.0,"type":"n","inp":1280,"out":4,"think":20.0,"api":1.0,"blocks":20,"prefix_hit_blocks":20}]})");
  EXPECT_DOUBLE_EQ(*trace.info.stats.reuse, 45.0 / 71);
  const auto all = serve_all(*trace.source, unit::sec);
  ASSERT_EQ(all.size(), 5u);
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_EQ(all[1].request.blocks[i] == all[2].request.blocks[i], i < 18) << i;
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_EQ(all[0].request.blocks[i] == all[1].request.blocks[i], i < 7) << i;
}

TEST(Weka, shared_prefixes_are_stored_once_and_come_back_whole) {
  // A long conversation with a compaction in the middle: every prompt as it was written.
  std::string requests;
  std::vector<std::pair<int, int>> spans;
  for (int i = 0; i < 40; ++i) {
    const int from = i < 20 ? 1 : 1000, to = from + 9 + 3 * (i % 20);
    spans.emplace_back(from, to);
    requests += (i ? "," : "") + call(10 * i, 64 * (to - from + 1), 5, ids(from, to), 1, 2);
  }
  Trace trace = opened(session("a", requests, "global"));
  const auto all = serve_all(*trace.source, unit::sec);
  ASSERT_EQ(all.size(), 40u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::uint64_t> want;
    for (int id = spans[i].first; id <= spans[i].second; ++id)
      want.push_back(static_cast<std::uint64_t>(id));
    ASSERT_EQ(all[i].request.blocks, want) << i;
  }
}

TEST(Weka, concurrency_starts_a_session_when_one_ends) {
  std::string text;
  for (int i = 0; i < 5; ++i)
    text += session("s", call(0, 64, 1, ids(1, 1), 1, 0) + "," + call(3, 64, 1, ids(1, 1), 1, 2)) +
            "\n";
  Trace all_at_once = opened(text);
  EXPECT_EQ(serve_all(*all_at_once.source, unit::sec)[4].at(), 0);
  Trace two = opened(text, {.concurrency = 2});
  // A session takes 1 + 2 + 1 s.
  EXPECT_EQ(arrivals(serve_all(*two.source, unit::sec)),
            (std::vector<double>{0, 0, 3, 3, 4, 4, 7, 7, 8, 11}));
}

TEST(Weka, malformed_sessions_are_refused_with_the_request) {
  EXPECT_EQ(
      refusal(session("a", R"({"t":0,"type":"n","in":5,"out":1},{"type":"n","in":5,"out":1})")),
      "t:1: request 2 of the session lacks t");
  EXPECT_EQ(refusal(session("a", R"({"t":0,"type":"n","out":1})")),
            "t:1: request 1 of the session lacks in");
  EXPECT_TRUE(refusal(session("a", R"({"t":-1,"type":"n","in":5,"out":1})"))
                  .starts_with("t:1: request 1 of the session has t -1"));
  std::string deep = R"({"t":1,"type":"n","in":5,"out":1})";
  for (int i = 0; i < 12; ++i) deep = R"({"t":1,"type":"subagent","requests":[)" + deep + "]}";
  EXPECT_NE(refusal(session("a", deep)).find("nests sub-agents more than 8 deep"),
            std::string::npos);
}

std::string span(const std::string& id, const std::string& parent, double start, double end,
                 const std::string& messages, const std::string& answer,
                 const std::string& more = "") {
  const auto time = [](double s) { return fmt::format("2026-02-25T10:00:{:09.6f}", s); };
  return fmt::format(
      R"({{"span_id":"{}","parent_span_id":{},"name":"chat","start_time":"{}","end_time":"{}",)"
      R"("attributes":{{"gen_ai.operation.name":"chat","gen_ai.request.max_tokens":500,)"
      R"("gen_ai.input.messages":"[{}]","gen_ai.output.text":"{}"{}}}}})",
      id, parent.empty() ? "null" : '"' + parent + '"', time(start), time(end), messages, answer,
      more);
}
std::string said(const std::string& role, const std::string& text) {
  return R"({\"role\": \")" + role + R"(\", \"content\": \")" + text + R"(\"})";
}
std::string document(const std::string& spans) {
  return "{\"trace_id\": \"x\",\n \"spans\": [\n" + spans + "]\n}\n";
}

TEST(Otel, a_call_waits_for_the_answers_that_it_quotes) {
  const std::string a = said("user", "A?"), b = said("user", "B?");
  Trace trace = opened(document(
      span("1", "", 0, 2, a, "Alpha") + "," + span("2", "", 0.5, 4, b, "Beta") + "," +
      span("3", "", 6, 7, a + "," + said("assistant", "Alpha") + "," + said("assistant", "Beta"),
           "Both")));
  EXPECT_EQ(trace.info.format, "otel-agentic");
  EXPECT_EQ(trace.info.stats.sessions, 1);
  const auto all = serve_all(*trace.source, 10 * unit::sec);
  // The later of both answers was 2 s before the third call.
  EXPECT_EQ(arrivals(all), (std::vector<double>{0, 0.5, 12.5}));
  EXPECT_EQ(all[0].request.max_tokens, 500);
  EXPECT_EQ(all[0].request.osl, 2);  // "Alpha", four bytes a token
}

TEST(Otel, a_named_parent_and_counted_tokens_are_used) {
  Trace trace = opened(
      document(span("1", "", 0, 2, said("user", "A?"), "Alpha",
                    R"(,"gen_ai.usage.prompt_tokens":100,"gen_ai.usage.completion_tokens":50)") +
               "," +
               span("2", "1", 3, 4, said("user", "B?"), "Beta",
                    R"(,"gen_ai.usage.input_tokens":180,"gen_ai.usage.output_tokens":60)")));
  const auto all = serve_all(*trace.source, 5 * unit::sec);
  EXPECT_EQ(arrivals(all), (std::vector<double>{0, 6}));
  EXPECT_EQ(all[0].request.isl, 100);
  EXPECT_EQ(all[1].request.osl, 60);
}

TEST(Otel, a_prompt_that_goes_on_shares_its_beginning) {
  const std::string start = said("system", std::string(300, 's')) + "," + said("user", "question");
  Trace trace =
      opened(document(span("1", "", 0, 2, start, "answer") + "," +
                      span("2", "", 3, 4, start + "," + said("assistant", "answer"), "again")));
  const auto all = serve_all(*trace.source, unit::sec);
  ASSERT_GE(all[0].request.blocks.size(), 5u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(all[0].request.blocks[i], all[1].request.blocks[i]);
  EXPECT_NE(all[0].request.blocks.back(), all[1].request.blocks.back());
}

TEST(Otel, spans_of_tools_are_counted_and_times_without_sense_refused) {
  std::string tool = span("9", "", 1, 2, said("user", "x"), "y");
  tool.replace(tool.find("\"chat\",\"gen_ai.request"), 6, "\"execute_tool\"");
  Trace trace = opened(document(tool + "," + span("1", "", 0, 2, said("user", "A?"), "Alpha")));
  EXPECT_EQ(trace.info.skipped.at("spans that are no model calls"), 1);
  EXPECT_EQ(refusal(document(span("1", "", 5, 2, said("user", "A?"), "Alpha"))),
            "t: span 1 has no start_time and end_time that are dates and times in this order");
}

}  // namespace
}  // namespace racktwin::workload
