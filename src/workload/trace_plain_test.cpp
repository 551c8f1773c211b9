// Azure, BurstGPT, Vidur: rows, clocks, traps, and the stream of files too long to hold.
#include <fmt/format.h>

#include "base/rng.hpp"
#include "workload/trace_test_tools.hpp"

namespace racktwin::workload {
namespace {

const std::string azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

TEST(Azure, seven_digits_of_a_second_are_kept) {
  Trace trace = opened(azure +
                       "2023-11-16 18:17:03.9799600,4808,10\n"
                       "2023-11-16 18:17:04.0319601,3180,8\n");
  EXPECT_EQ(trace.info.format, "azure-2023");
  EXPECT_EQ(trace.info.time_unit, "timestamp (100 ns)");
  const auto all = serve_all(*trace.source, unit::sec);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].request.arrival, Instant{});
  EXPECT_EQ(all[1].request.arrival.ns(), 52000100);
  EXPECT_EQ(all[1].request.isl, 3180);
  EXPECT_EQ(all[1].request.osl, 8);
  EXPECT_EQ(all[1].request.max_tokens, 10);  // the longest answer: nothing else is recorded
}

TEST(Azure, times_with_and_without_a_fraction_mix_in_the_week_of_2024) {
  Trace trace = opened(azure +
                       "2024-05-12 00:00:00.500000+00:00,1,2\n"
                       "2024-05-12 00:00:02+00:00,3,4\n"
                       "2024-05-13 02:00:00+02:00,5,6\n");
  EXPECT_EQ(trace.info.format, "azure-2024");
  EXPECT_EQ(arrivals(serve_all(*trace.source, unit::sec)), (std::vector<double>{0, 1.5, 86399.5}));
}

TEST(Azure, images_name_the_multimodal_trace) {
  Trace trace = opened(
      "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\r\n"
      "2024-10-15T12:00:00.269Z,0,770,491\r\n2024-10-15T12:00:05.819Z,1,949,126\r\n");
  EXPECT_EQ(trace.info.format, "azure-multimodal");
  EXPECT_EQ(trace.info.time_unit, "timestamp (ms)");
  const auto all = serve_all(*trace.source, unit::sec);
  EXPECT_EQ(all[1].request.arrival.ns(), 5550000000);
  EXPECT_EQ(all[1].request.isl, 949);
}

TEST(Azure, a_leap_day_and_a_new_year_are_a_day_long) {
  Trace trace = opened(azure +
                       "2024-02-28 12:00:00+00:00,1,1\n2024-02-29 12:00:00+00:00,1,1\n"
                       "2024-03-01 12:00:00+00:00,1,1\n");
  EXPECT_EQ(arrivals(serve_all(*trace.source, unit::sec)), (std::vector<double>{0, 86400, 172800}));
}

TEST(Azure, a_byte_order_mark_blank_lines_and_a_missing_last_end_are_nothing) {
  Trace trace = opened("\xef\xbb\xbf" + azure + "\n2023-11-16 18:17:03.9799600,4808,10\n\n" +
                       "2023-11-16 18:17:04.9799600,4,1");
  EXPECT_EQ(trace.info.stats.requests, 2);
}

TEST(Azure, rows_that_are_no_request_are_counted_by_reason) {
  Trace trace = opened(azure +
                       "2023-11-16 18:17:03.9,4808,0\n2023-11-16 18:17:04.0,0,5\n"
                       "2023-11-16 18:17:05.0,2,1\n2023-11-16 18:17:05.1,2,0\n");
  EXPECT_EQ(trace.info.stats.requests, 1);
  const std::map<std::string, std::int64_t> expected = {{"without output tokens", 2},
                                                        {"without input tokens", 1}};
  EXPECT_EQ(trace.info.skipped, expected);
}

TEST(Azure, rows_out_of_order_are_sorted_and_equal_rows_kept) {
  Trace trace = opened(azure +
                       "2023-11-16 18:17:09.0,9,1\n2023-11-16 18:17:03.0,3,1\n"
                       "2023-11-16 18:17:05.0,5,1\n2023-11-16 18:17:05.0,5,1\n");
  std::vector<std::int64_t> isl;
  for (const Served& served : serve_all(*trace.source, unit::sec))
    isl.push_back(served.request.isl);
  EXPECT_EQ(isl, (std::vector<std::int64_t>{3, 5, 5, 9}));
}

TEST(Azure, two_clocks_in_one_file_are_refused_by_line) {
  EXPECT_EQ(refusal(azure + "2023-11-16 18:17:03.97,1,1\n2023-11-16 18:17:04.97+00:00,1,1\n"),
            "t:3: the times mix two clocks: \"2023-11-16 18:17:04.97+00:00\" has a time zone, the "
            "rows before lack one; one origin is needed");
}

TEST(Azure, malformed_rows_are_refused_with_line_and_value) {
  const std::string row = "2023-11-16 18:17:03.97,1,1\n";
  const std::pair<std::string, std::string> cases[] = {
      {",5,5\n", "t:3: TIMESTAMP is missing"},
      {"nan,5,5\n", "t:3: TIMESTAMP \"nan\" is no date and time"},
      {"1969-11-16 18:17:03,5,5\n", "t:3: TIMESTAMP \"1969-11-16 18:17:03\" is no date"},
      {"2100-11-16 18:17:03,5,5\n", "t:3: TIMESTAMP \"2100-11-16 18:17:03\" is no date"},
      {"2023-13-16 18:17:03,5,5\n", "t:3: TIMESTAMP \"2023-13-16 18:17:03\" is no date"},
      {"2023-11-16 25:17:03,5,5\n", "t:3: TIMESTAMP \"2023-11-16 25:17:03\" is no date"},
      {"2023-11-16 18:17:03.,5,5\n", "t:3: TIMESTAMP \"2023-11-16 18:17:03.\" is no date"},
      {"2023-11-16 18:17:03+0,5,5\n", "t:3: TIMESTAMP \"2023-11-16 18:17:03+0\" is no date"},
      {"2023-11-16 18:17:04,-5,5\n", "t:3: ContextTokens \"-5\" is no count of tokens"},
      {"2023-11-16 18:17:04,5,NaN\n", "t:3: GeneratedTokens \"NaN\" is no count of tokens"},
      {"2023-11-16 18:17:04,5,1e99\n", "t:3: GeneratedTokens \"1e99\" is no count of tokens"},
      {"2023-11-16 18:17:04,99999999999999999999,1\n", "t:3: ContextTokens"},
      {"2023-11-16 18:17:04,5\n", "t:3: has 2 fields where the header names 3 at least"},
      {"2023-11-16 18:17:04,,5\n", "t:3: ContextTokens \"\" is no count of tokens"}};
  for (const auto& [bad, message] : cases)
    EXPECT_TRUE(refusal(azure + row + bad).starts_with(message)) << refusal(azure + row + bad);
}

TEST(Azure, a_trace_without_a_request_is_refused_with_what_there_was) {
  EXPECT_EQ(refusal(azure), "t: has no request that can be replayed (no row at all)");
  EXPECT_EQ(refusal(azure + "2023-11-16 18:17:03,5,0\n"),
            "t: has no request that can be replayed (1 without output tokens)");
}

TEST(Burst, failures_are_counted_as_failures) {
  Trace trace = opened(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n"
      "45.5,ChatGPT,1087,0,1087,Conversation log\n"
      "118,GPT-4,417,276,693,Conversation log\n");
  EXPECT_EQ(trace.info.format, "burstgpt");
  EXPECT_EQ(trace.info.time_unit, "s");
  EXPECT_EQ(trace.info.skipped.at("failed (0 response tokens)"), 1);
  EXPECT_EQ(arrivals(serve_all(*trace.source, unit::sec)), (std::vector<double>{0, 113}));
}

TEST(Burst, times_that_are_no_time_are_refused) {
  const std::string header =
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n";
  for (const std::string bad : {"-5", "nan", "inf", "", "x", "1e300"})
    EXPECT_TRUE(refusal(header + bad + ",GPT-4,4,2,6,API log\n").starts_with("t:2: Timestamp"))
        << bad;
  EXPECT_TRUE(refusal(header + "1700000000,GPT-4,4,2,6,API log\n7,GPT-4,4,2,6,API log\n")
                  .starts_with("t:3: the times mix two clocks: line 2 counts from 1970, line 3"));
}

TEST(BurstSessions, a_turn_waits_for_the_answer_before_and_the_recorded_pause) {
  Trace trace = opened(
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log "
      "Type\n"
      "19440110.0,a,43,GPT-4,906,446,1352,Conversation log\n"
      "19440120.0,,2,ChatGPT,36,29,65,API log\n"
      "19440200.0,a,5,GPT-4,950,20,970,Conversation log\n"
      "19440300.0,a,5,GPT-4,950,0,970,Conversation log\n");
  EXPECT_EQ(trace.info.format, "burstgpt-3");
  EXPECT_TRUE(trace.info.closed_loop);
  EXPECT_EQ(trace.info.stats.sessions, 1);
  // Recorded: asked at 0, answered at 43, asked again at 90: a pause of 47 s.
  EXPECT_EQ(arrivals(serve_all(*trace.source, 100 * unit::sec)), (std::vector<double>{0, 10, 147}));
}

TEST(Vidur, rows_with_and_without_arrivals_are_read_floats_too) {
  Trace timed =
      opened("arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n4.314579,396.0,109\n");
  EXPECT_EQ(timed.info.time_unit, "s");
  const auto all = serve_all(*timed.source, unit::sec);
  EXPECT_EQ(all[1].request.arrival.ns(), 4314579000);
  EXPECT_EQ(all[1].request.isl, 396);
  Trace batch = opened(
      "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n3772,54,3826,69.85\n"
      "2015,156,2171,12.9\n");
  EXPECT_EQ(batch.info.time_unit, "none");
  EXPECT_EQ(arrivals(serve_all(*batch.source, unit::sec)), (std::vector<double>{0, 0}));
}

std::string many_rows(int rows, std::uint64_t seed) {
  Rng rng(seed, "rows");
  std::string text = azure;
  std::int64_t us = 0;
  for (int i = 0; i < rows; ++i) {
    us += static_cast<std::int64_t>(rng.below(2500000));
    text += fmt::format("2024-05-12 {:02}:{:02}:{:02}.{:06}+00:00,{},{}\n", us / 3600000000,
                        us / 60000000 % 60, us / 1000000 % 60, us % 1000000, rng.below(5000),
                        rng.below(900));
  }
  return text;
}

TEST(Stream, a_streamed_trace_is_the_held_one) {
  const std::string text = many_rows(5000, 3);
  for (const Scaling& scaling : {Scaling{}, Scaling{.compress = 3}, Scaling{.keep = 0.4}}) {
    TraceOptions options{.scaling = scaling, .limit = 4500, .max_context = 5000};
    Trace held = opened(text, options);
    options.held_rows = 100;
    Trace streamed = opened(text, options);
    const auto a = serve_all(*held.source, unit::sec), b = serve_all(*streamed.source, unit::sec);
    ASSERT_EQ(a.size(), b.size());
    ASSERT_GT(a.size(), 1000u);
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].request.isl, b[i].request.isl);
      ASSERT_EQ(a[i].request.osl, b[i].request.osl);
      // Thinning leaves the origin to the first row kept, or to the first of the file.
      if (scaling.keep == 1) {
        ASSERT_EQ(a[i].request.arrival, b[i].request.arrival);
      }
    }
    EXPECT_EQ(held.info.skipped, streamed.info.skipped);
    EXPECT_EQ(held.info.stats.requests, streamed.info.stats.requests);
    EXPECT_DOUBLE_EQ(held.info.stats.cv, streamed.info.stats.cv);
    EXPECT_DOUBLE_EQ(held.info.stats.dispersion_10s, streamed.info.stats.dispersion_10s);
    EXPECT_EQ(held.info.stats.isl.p95, streamed.info.stats.isl.p95);
    EXPECT_EQ(held.info.scaled.requests, streamed.info.scaled.requests);
    EXPECT_NEAR(held.info.scaled.cv, streamed.info.scaled.cv, 1e-9);
  }
}

TEST(Stream, an_unsorted_trace_too_long_to_hold_is_refused_by_line) {
  const std::string text = many_rows(200, 3) + "2024-05-11 00:00:00+00:00,5,5\n";
  EXPECT_EQ(refusal(text, {.held_rows = 50}),
            "t:202: is earlier than the row before it; a trace of more than 50 rows must be "
            "sorted by time");
  EXPECT_EQ(opened(text, {.held_rows = 500}).info.stats.span.in(unit::hour) > 24, true);
}

}  // namespace
}  // namespace racktwin::workload
