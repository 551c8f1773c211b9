// The Mooncake family and its neighbours: units, block sizes, sessions, waits, deltas.
#include <set>

#include "workload/trace_test_tools.hpp"

namespace racktwin::workload {
namespace {

TEST(Mooncake, milliseconds_and_ids_are_read_as_they_are) {
  Trace trace = opened(
      R"({"timestamp": 1000, "input_length": 1300, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 4052, "input_length": 1024, "output_length": 7, "hash_ids": [0, 1]}
{"timestamp": 4052, "input_length": 600, "output_length": 9, "hash_ids": [0, 9]}
)");
  EXPECT_EQ(trace.info.format, "mooncake");
  EXPECT_EQ(trace.info.time_unit, "ms");
  EXPECT_EQ(trace.info.block_tokens, 512);
  EXPECT_FALSE(trace.info.closed_loop);
  ASSERT_TRUE(trace.info.stats.reuse.has_value());
  EXPECT_DOUBLE_EQ(*trace.info.stats.reuse, 3.0 / 7);
  const auto all = serve_all(*trace.source, unit::sec);
  EXPECT_EQ(arrivals(all), (std::vector<double>{0, 3.052, 3.052}));
  EXPECT_EQ(all[0].request.blocks, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(all[2].request.block_tokens, 512);
  EXPECT_FALSE(all[0].request.session.has_value());
}

TEST(Mooncake, a_hit_behind_a_miss_is_no_reuse) {
  Trace trace = opened(
      R"({"timestamp": 0, "input_length": 1500, "output_length": 5, "hash_ids": [1, 2, 3]}
{"timestamp": 1, "input_length": 1500, "output_length": 5, "hash_ids": [1, 7, 8]}
)");
  EXPECT_DOUBLE_EQ(*trace.info.stats.reuse, 1.0 / 6);
}

TEST(Mooncake, ids_that_name_blocks_and_not_prefixes_are_chained) {
  // Block 5 follows 1 and 2: alone it does not stand for a prefix.
  Trace trace = opened(
      R"({"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [1, 5]}
{"timestamp": 1, "input_length": 1024, "output_length": 5, "hash_ids": [2, 5]}
{"timestamp": 2, "input_length": 1024, "output_length": 5, "hash_ids": [1, 5]}
)");
  const auto all = serve_all(*trace.source, unit::sec);
  EXPECT_NE(all[0].request.blocks[1], all[1].request.blocks[1]);
  EXPECT_EQ(all[0].request.blocks, all[2].request.blocks);
  EXPECT_DOUBLE_EQ(*trace.info.stats.reuse, 2.0 / 6);
}

TEST(Mooncake, ids_that_do_not_match_the_length_are_refused_by_line) {
  EXPECT_EQ(
      refusal(R"({"timestamp": 0, "input_length": 513, "output_length": 5, "hash_ids": [1, 2]}
{"timestamp": 5, "input_length": 20, "output_length": 5, "hash_ids": [1, 2]}
)"),
      "t:2: has 2 hash ids of 512 tokens, which stand for 513 to 1024 tokens, and input_length 20");
  for (const char* isl : {"512", "1025"})
    EXPECT_NE(
        refusal(R"({"timestamp": 0, "output_length": 5, "hash_ids": [1, 2], "input_length": )" +
                std::string(isl) + "}")
            .find("t:1: has 2 hash ids"),
        std::string::npos);
  for (const char* isl : {"513", "1024"})
    EXPECT_EQ(
        opened(R"({"timestamp": 0, "output_length": 5, "hash_ids": [1, 2], "input_length": )" +
               std::string(isl) + "}")
            .info.block_tokens,
        512);
}

TEST(Mooncake, another_block_size_is_seen_where_enough_rows_agree) {
  std::string text;
  for (int i = 0; i < 5; ++i)
    text += R"({"timestamp": 1, "input_length": 150, "output_length": 5, "hash_ids": [1, 2, 3]})"
            "\n";
  EXPECT_EQ(opened(text).info.block_tokens, 64);
  EXPECT_EQ(opened(text, {.block_tokens = 64}).info.block_tokens, 64);
  EXPECT_NE(refusal(text, {.block_tokens = 16}).find("3 hash ids of 16 tokens"), std::string::npos);
}

TEST(Mooncake, times_that_are_missing_negative_or_no_number_are_refused_by_line) {
  const std::string row = R"({"timestamp": 100, "input_length": 5, "output_length": 5})"
                          "\n";
  const auto with = [&](const std::string& bad) { return refusal(row + bad); };
  EXPECT_EQ(with(R"({"input_length": 5, "output_length": 5})"),
            "t:2: lacks a timestamp, which line 1 has; all requests (of a session, the first) "
            "have one, or none");
  EXPECT_EQ(with(R"({"timestamp": null, "input_length": 5, "output_length": 5})").substr(0, 23),
            "t:2: lacks a timestamp,");
  EXPECT_TRUE(with(R"({"timestamp": -3, "input_length": 5, "output_length": 5})")
                  .starts_with("t:2: has timestamp -3, which is no number from 0"));
  EXPECT_EQ(with(R"({"timestamp": NaN, "input_length": 5, "output_length": 5})"),
            "t:2: has NaN, which is no number");
  EXPECT_TRUE(with(R"({"timestamp": "x", "input_length": 5, "output_length": 5})")
                  .starts_with("t:2: has timestamp \"x\", which is no number"));
  EXPECT_TRUE(with(R"({"timestamp": 1780000000000, "input_length": 5, "output_length": 5})")
                  .starts_with("t:2: the times mix two clocks: line 2 counts from 1970, line 1"));
  EXPECT_TRUE(
      with(R"({"timestamp": 1, "output_length": 5})").starts_with("t:2: lacks input_length"));
  EXPECT_TRUE(with(R"({"timestamp": 1, "input_length": -5, "output_length": 5})")
                  .starts_with("t:2: has input_length -5, which is no whole number from 0"));
  EXPECT_TRUE(with(R"({"timestamp": 1, "input_length": 5.5, "output_length": 5})")
                  .starts_with("t:2: has input_length 5.5, which is no whole number"));
  EXPECT_TRUE(with(R"({"timestamp": 1, "input_length": 5, "output_length": 5, "hash_ids": [-1]})")
                  .starts_with("t:2: has -1 in hash_ids, which is no block id"));
  EXPECT_TRUE(with("{\"timestamp\": 1, \"input_le").starts_with("t:2: is no JSON ("));
  EXPECT_TRUE(with("[1, 2]").starts_with("t:2: is no JSON object"));
}

TEST(Mooncake, without_any_times_all_come_at_once) {
  Trace trace = opened(R"({"input_length": 5, "output_length": 5}
{"input_length": 6, "output_length": 5}
)");
  EXPECT_EQ(trace.info.time_unit, "none");
  EXPECT_EQ(arrivals(serve_all(*trace.source, unit::sec)), (std::vector<double>{0, 0}));
}

TEST(Mooncake, rows_without_a_length_of_the_answer_are_counted) {
  Trace trace = opened(R"({"timestamp": 1, "input_length": 5}
{"timestamp": 2, "input_length": 6, "output_length": 5}
{"timestamp": 3, "input_length": 6, "output_length": 0}
{"timestamp": 4, "text_input": "four letters to a token", "output_length": 1}
)");
  EXPECT_EQ(trace.info.skipped.at("without an output length"), 1);
  EXPECT_EQ(trace.info.skipped.at("without output tokens"), 1);
  EXPECT_EQ(serve_all(*trace.source, unit::sec)[1].request.isl, 6);  // 23 bytes
}

TEST(Mooncake, times_too_far_apart_are_refused_and_long_pauses_do_not_overflow) {
  EXPECT_EQ(refusal(R"({"timestamp": 0, "input_length": 1, "output_length": 1}
{"timestamp": 400000000000, "input_length": 1, "output_length": 1}
)"),
            "t: has times that lie 13 years apart; ten at most: a clock is wrong");
  const std::string far = R"({"timestamp": 0, "input_length": 1, "output_length": 1}
{"timestamp": 300000000, "input_length": 1, "output_length": 1}
)";
  EXPECT_EQ(refusal(far, {.scaling = {.compress = 1e-4}}),
            "t: would last 95 years when its time is divided by 0.0001; ten at most");
  std::string pauses;
  for (int i = 0; i < 10; ++i)
    pauses += R"({"session_id": 1, "delay": 30000000000, "input_length": 1, "output_length": 1})"
              "\n";
  Trace trace = opened(pauses);
  EXPECT_EQ(serve_all(*trace.source, unit::hour).size(), 10u);
}

TEST(TimedTrace, seconds_with_fractions_and_blocks_of_16_are_seen) {
  Trace trace = opened(
      R"({"timestamp": 0, "input_length": 20, "output_length": 5, "hash_ids": [1, 2]}
{"timestamp": 1.5, "input_length": 16, "output_length": 5, "hash_ids": [1]}
)");
  EXPECT_EQ(trace.info.format, "timed-trace");
  EXPECT_EQ(trace.info.time_unit, "s");
  EXPECT_EQ(trace.info.block_tokens, 16);
  EXPECT_EQ(arrivals(serve_all(*trace.source, unit::sec)), (std::vector<double>{0, 1.5}));
  Trace whole = opened(R"({"timestamp": 7, "input_length": 20, "output_length": 5}
{"timestamp": 9, "input_length": 20, "output_length": 5}
)",
                       {.format = "timed-trace"});
  EXPECT_EQ(arrivals(serve_all(*whole.source, unit::sec)), (std::vector<double>{0, 2}));
}

TEST(Art, ids_may_be_texts) {
  std::string text;
  for (int i = 0; i < 3; ++i)
    text += R"({"request_id": "d", "timestamp_ms": 235, "input_length": 600, "output_length": 33, )"
            R"("hash_ids": ["9c9f759d6b8bc0ea52a1f307", "5aedfb8ecf46797d350f344d", "84"]})"
            "\n";
  Trace trace = opened(text);
  EXPECT_EQ(trace.info.format, "art");
  EXPECT_EQ(trace.info.time_unit, "ms");
  EXPECT_EQ(trace.info.block_tokens, 256);
  EXPECT_DOUBLE_EQ(*trace.info.stats.reuse, 6.0 / 9);
}

const std::string turns =
    R"({"session_id": "a", "timestamp": 1000, "input_length": 600, "output_length": 20, "hash_ids": [1, 2]}
{"session_id": "b", "timestamp": 1500, "input_length": 100, "output_length": 20, "hash_ids": [7]}
{"session_id": "a", "delay": 250, "input_length": 700, "output_length": 20, "hash_ids": [1, 3]}
{"session_id": "a", "delay": 50, "input_length": 800, "output_length": 20, "hash_ids": [1, 4]}
)";

TEST(MooncakeSessions, turns_wait_for_answers_and_delays) {
  Trace trace = opened(turns);
  EXPECT_EQ(trace.info.format, "mooncake-sessions");
  EXPECT_TRUE(trace.info.closed_loop);
  EXPECT_EQ(trace.info.stats.sessions, 2);
  const auto all = serve_all(*trace.source, 2 * unit::sec);
  EXPECT_EQ(arrivals(all), (std::vector<double>{0, 0.5, 2.25, 4.3}));
  EXPECT_EQ(all[2].request.isl, 700);  // whole prompts, not deltas
  EXPECT_EQ(all[2].request.session, all[0].request.session);
  Trace stamped = opened(turns, {.closed_loop_sessions = false});
  EXPECT_FALSE(stamped.info.closed_loop);
  EXPECT_EQ(arrivals(serve_all(*stamped.source, 2 * unit::sec)),
            (std::vector<double>{0, 0.25, 0.3, 0.5}));
}

TEST(MooncakeSessions, a_first_turn_without_a_time_among_others_is_refused) {
  EXPECT_TRUE(
      refusal(turns + R"({"session_id": "c", "delay": 5, "input_length": 5, "output_length": 5})")
          .starts_with("t:5: lacks a timestamp, which line 1 has"));
}

TEST(MooncakeSessions, a_skipped_turn_does_not_break_the_chain) {
  Trace trace = opened(
      R"({"session_id": 4, "input_length": 100, "output_length": 20}
{"session_id": 4, "delay": 1000, "input_length": 200, "output_length": 0}
{"session_id": 4, "delay": 500, "input_length": 300, "output_length": 20}
)");
  EXPECT_EQ(arrivals(serve_all(*trace.source, unit::sec)), (std::vector<double>{0, 1.5}));
}

TEST(MooncakeSessions, too_long_turns_are_left_out_and_the_next_waits_in_their_place) {
  Trace trace = opened(turns, {.max_context = 710});
  EXPECT_EQ(trace.info.skipped.at("longer than the largest context"), 2);
  Trace middle = opened(
      R"({"session_id": 4, "timestamp": 0, "input_length": 100, "output_length": 20}
{"session_id": 4, "delay": 1000, "input_length": 900, "output_length": 20}
{"session_id": 4, "delay": 500, "input_length": 300, "output_length": 20}
)",
      {.max_context = 400});
  EXPECT_EQ(arrivals(serve_all(*middle.source, unit::sec)), (std::vector<double>{0, 2.5}));
}

TEST(MooncakeDelta, turns_that_tell_what_is_new_are_accumulated) {
  const std::string text =
      R"({"session_id": "s0", "input_length": 4, "output_length": 2, "hash_ids": [1], "timestamp": 0}
{"session_id": "s0", "input_length": 2, "output_length": 1, "hash_ids": [2], "delay": 5}
{"session_id": "s1", "input_length": 4, "output_length": 2, "hash_ids": [1], "timestamp": 9}
)";
  Trace trace = opened(text, {.block_tokens = 4});
  EXPECT_EQ(trace.info.format, "mooncake-delta");
  const auto all = serve_all(*trace.source, unit::ms);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(arrivals(all), (std::vector<double>{0, 0.006, 0.009}));
  EXPECT_EQ(all[1].request.isl, 4 + 2 + 2);
  ASSERT_EQ(all[1].request.blocks.size(), 2u);
  EXPECT_EQ(all[1].request.blocks[0], all[0].request.blocks[0]);
  EXPECT_EQ(all[2].request.blocks[0], all[0].request.blocks[0]);  // the same first prompt
}

TEST(MooncakeWaits, a_request_waits_for_those_it_names) {
  Trace trace = opened(
      R"({"request_id": "root", "session_id": "s", "input_length": 4, "output_length": 2, "timestamp": 0}
{"request_id": "other", "session_id": "s", "input_length": 4, "output_length": 2, "wait_for": ["root"], "delay": 1000}
{"request_id": "child", "session_id": "s", "input_length": 4, "output_length": 1, "wait_for": ["root", "other"], "delay": 2, "tool_wait_ms": 3}
)",
      {.format = "mooncake"});
  EXPECT_EQ(arrivals(serve_all(*trace.source, unit::sec)), (std::vector<double>{0, 2, 3.005}));
}

TEST(MooncakeWaits, circles_and_strangers_are_refused) {
  EXPECT_EQ(refusal(R"({"request_id": "a", "input_length": 4, "output_length": 2, "wait_for": ["b"]}
{"request_id": "b", "input_length": 4, "output_length": 2, "wait_for": ["a"]}
)"),
            "t: has requests that wait for one another in a circle");
  EXPECT_EQ(
      refusal(R"({"request_id": "a", "input_length": 4, "output_length": 2, "wait_for": ["x"]})"),
      "t:1: waits for request \"x\", which is not in the trace");
}

const std::string chats =
    R"({"chat_id": 7, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 20, "output_length": 5, "type": "text", "turn": 1, "hash_ids": [1, 2]}
{"chat_id": 8, "parent_chat_id": 7, "timestamp": 2.0, "input_length": 40, "output_length": 5, "type": "text", "turn": 2, "hash_ids": [1, 3, 4]}
{"chat_id": 9, "parent_chat_id": 8, "timestamp": 9.0, "input_length": 40, "output_length": 5, "type": "text", "turn": 3, "hash_ids": [1, 3, 5]}
{"chat_id": 1, "parent_chat_id": 0, "timestamp": 1.0, "input_length": 16, "output_length": 5, "type": "search", "turn": 4, "hash_ids": [6]}
)";

TEST(Bailian, a_turn_comes_when_it_came_and_not_before_its_answer) {
  Trace trace = opened(chats);
  EXPECT_EQ(trace.info.format, "qwen-bailian");
  EXPECT_EQ(trace.info.block_tokens, 16);
  EXPECT_EQ(trace.info.time_unit, "s");
  EXPECT_EQ(trace.info.stats.sessions, 2);
  EXPECT_DOUBLE_EQ(*trace.info.stats.reuse, 3.0 / 9);
  EXPECT_EQ(arrivals(serve_all(*trace.source, 3 * unit::sec)),
            (std::vector<double>{0, 0.5, 3.0, 8.5}));
  Trace again = opened(chats);
  EXPECT_EQ(arrivals(serve_all(*again.source, 0.25 * unit::sec)),
            (std::vector<double>{0, 0.5, 1.5, 8.5}));
}

TEST(Bailian, rows_whose_ids_do_not_fit_are_counted_and_name_the_first) {
  Trace trace = opened(
      chats +
      R"({"chat_id": 3, "parent_chat_id": -1, "timestamp": 9, "input_length": 521, "output_length": 1, "hash_ids": [1089, 1090]})");
  EXPECT_EQ(trace.info.stats.requests, 4);
  EXPECT_EQ(trace.info.skipped.at("with hash ids that do not match the length (the first: line 5)"),
            1);
}

TEST(Bailian, parents_in_a_circle_and_repeated_chats_are_refused) {
  EXPECT_NE(
      refusal(
          R"({"chat_id": 1, "parent_chat_id": 2, "timestamp": 1, "input_length": 9, "output_length": 5}
{"chat_id": 2, "parent_chat_id": 1, "timestamp": 2, "input_length": 9, "output_length": 5}
)")
          .find("in a circle"),
      std::string::npos);
  EXPECT_NE(refusal(chats + chats).find("t:5: has chat_id 7 a second time"), std::string::npos);
}

TEST(Offline, a_batch_has_no_arrivals_and_may_lack_the_output) {
  Trace trace = opened(
      R"({"request_id": 0, "type": "text", "input_length": 17, "hash_ids": [0, 1], "img_ids": []}
{"request_id": 0, "type": "text", "input_length": 61, "output_length": 2370, "duration": 14000}
)");
  EXPECT_EQ(trace.info.format, "servegen-offline");
  EXPECT_EQ(trace.info.time_unit, "none");
  EXPECT_EQ(trace.info.stats.requests, 1);
  EXPECT_EQ(trace.info.skipped.at("without an output length"), 1);
  EXPECT_TRUE(refusal(R"({"request_id": 0, "type": "text", "input_length": 61, "hash_ids": [1]})")
                  .starts_with("t:1: has 1 hash ids of 16 tokens"));
}

TEST(ServingSim, single_requests_and_sessions_mix) {
  Trace trace = opened(
      R"({"input_toks": 10, "output_toks": 5, "arrival_time_ns": 500000000}
{"session_id": "a", "arrival_time_ns": 1000000000, "sub_requests": [{"input_toks": 10, "output_toks": 5, "tool_duration_ns": 2000000000}, {"input_toks": 30, "output_toks": 5, "tool_duration_ns": 0}]}
)");
  EXPECT_EQ(trace.info.format, "llmservingsim");
  EXPECT_EQ(trace.info.time_unit, "ns");
  EXPECT_TRUE(trace.info.closed_loop);
  EXPECT_EQ(arrivals(serve_all(*trace.source, unit::sec)), (std::vector<double>{0, 0.5, 3.5}));
}

TEST(ServingSim, token_ids_name_prefixes) {
  std::string ids, other;
  for (int i = 0; i < 40; ++i) {
    ids += (i ? "," : "") + std::to_string(i);
    other += (i ? "," : "") + std::to_string(i < 20 ? i : 900 + i);
  }
  Trace trace = opened(
      "{\"input_toks\": 40, \"output_toks\": 5, \"arrival_time_ns\": 0, "
      "\"input_tok_ids\": [" +
      ids + "]}\n" +
      "{\"input_toks\": 40, \"output_toks\": 5, \"arrival_time_ns\": 9, "
      "\"input_tok_ids\": [" +
      other + "]}\n");
  const auto all = serve_all(*trace.source, unit::sec);
  ASSERT_EQ(all[0].request.blocks.size(), 3u);
  EXPECT_EQ(all[0].request.blocks[0], all[1].request.blocks[0]);
  EXPECT_NE(all[0].request.blocks[1], all[1].request.blocks[1]);
  EXPECT_EQ(all[0].request.block_tokens, 16);
}

TEST(Dynamo, ends_of_requests_keep_their_overlap) {
  std::string text;
  for (const int start : {100, 120})
    text +=
        R"({"schema": "dynamo.request.trace.v1", "event_type": "request_end", "request": {"output_tokens": 2, "request_received_ms": )" +
        std::to_string(start) +
        R"(, "replay": {"trace_block_size": 4, "input_length": 4, "input_sequence_hashes": [11]}}})"
        "\n";
  text += R"({"schema": "dynamo.request.trace.v1", "event_type": "request_start"})";
  Trace trace = opened(text);
  EXPECT_EQ(trace.info.format, "dynamo-request");
  EXPECT_EQ(trace.info.block_tokens, 4);
  EXPECT_DOUBLE_EQ(*trace.info.stats.reuse, 0.5);
  EXPECT_EQ(trace.info.skipped.at("events other than request_end"), 1);
  EXPECT_EQ(arrivals(serve_all(*trace.source, unit::sec)), (std::vector<double>{0, 0.02}));
}

const std::string blis =
    "request_id,client_id,slo_class,session_id,round_index,prefix_group,prefix_length,"
    "input_tokens,output_tokens,deadline_us,arrival_time_us,send_time_us,last_chunk_time_us,"
    "status,error_message\n";

TEST(Blis, arrivals_are_the_clock_whatever_the_others_count_from) {
  Trace trace =
      opened(blis +
             "0,c,s,,0,,0,100,10,5000000,1000000,1780000000000000,1780000000900000,ok,\n"
             "1,c,s,,0,g,32,100,10,5000000,1500000,1780000000500000,1780000000900000,ok,\n"
             "2,c,s,,0,g,32,100,10,0,1600000,0,0,ok,\n"
             "3,c,s,,0,g,32,100,10,0,1700000,0,0,timeout,\"late, very\"\n");
  EXPECT_EQ(trace.info.format, "blis-tracev2");
  EXPECT_EQ(trace.info.time_unit, "us");
  EXPECT_EQ(trace.info.skipped.at("with status timeout"), 1);
  const auto all = serve_all(*trace.source, unit::sec);
  EXPECT_EQ(arrivals(all), (std::vector<double>{0, 0.5, 0.6}));
  EXPECT_EQ(all[1].request.blocks[1], all[2].request.blocks[1]);  // 32 tokens of the group
  EXPECT_NE(all[1].request.blocks[2], all[2].request.blocks[2]);
  EXPECT_TRUE(all[0].request.blocks.empty());
}

TEST(Blis, arrivals_of_two_clocks_are_refused) {
  EXPECT_TRUE(refusal(blis + "0,c,s,,0,,0,1,1,0,1000000,0,0,ok,\n" +
                      "1,c,s,,0,,0,1,1,0,1780000000000000,0,0,ok,\n")
                  .starts_with("t:3: the times mix two clocks: line 3 counts from 1970, line 2"));
}

TEST(Blis, the_header_in_front_says_that_sessions_accumulate) {
  const std::string rows =
      "0,c,s,a,0,,0,100,10,0,0,5,1000005,ok,\n"
      "1,c,s,a,1,,0,30,10,0,3000000,5,5,ok,\n";
  Trace plain = opened(blis + rows);
  EXPECT_EQ(serve_all(*plain.source, unit::sec)[1].request.isl, 30);
  Trace grown = opened("trace_version: 2\nsession_context_growth: accumulate\n" + blis + rows);
  const auto all = serve_all(*grown.source, 5 * unit::sec);
  EXPECT_EQ(all[1].request.isl, 140);
  EXPECT_EQ(all[1].request.blocks[5], all[0].request.blocks[5]);
  // Sent at 5 us and done a second later; the next arrival 2 s after that.
  EXPECT_EQ(arrivals(all), (std::vector<double>{0, 7}));
}

}  // namespace
}  // namespace racktwin::workload
