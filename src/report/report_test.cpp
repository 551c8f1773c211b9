#include "report/report.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zstd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/file.hpp"
#include "report/made_up_result.hpp"
#include "report/numbers.hpp"

namespace racktwin::report {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::vector<std::string>> cells(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back(1);
    for (const char c : line) {
      if (c == ',')
        rows.back().emplace_back();
      else
        rows.back().back() += c;
    }
  }
  return rows;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Every word of `text` that reads as something which is no number.
void expect_no_nan(const std::string& text) {
  for (const char* word : {"nan", "NaN", "inf ", "Infinity", "-0 ", "e+"})
    EXPECT_FALSE(has(text, word)) << word << " in:\n" << text.substr(0, 2000);
}

// --- summary.json against docs/summary.schema.json ---

const Json& resolved(const Json& root, const Json& schema) {
  if (!schema.contains("$ref")) return schema;
  const auto path = schema["$ref"].get<std::string>();
  return root.at(Json::json_pointer(path.substr(1)));
}

std::string type_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "boolean";
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  if (value.is_string()) return "string";
  return value.is_array() ? "array" : "object";
}

// The part of JSON Schema that the file uses: type, properties (all of them required, in this
// order), additionalProperties, items, enum, minimum, maximum. A schema that says more is refused.
void expect_valid(const Json& root, const Json& unresolved, const Json& value,
                  const std::string& at) {
  const Json& schema = resolved(root, unresolved);
  static const std::set<std::string> known = {"$schema",    "$id",         "$defs",
                                              "title",      "description", "type",
                                              "properties", "required",    "additionalProperties",
                                              "items",      "enum",        "minimum",
                                              "maximum",    "pattern"};
  for (const auto& [key, unused] : schema.items()) EXPECT_TRUE(known.contains(key)) << key;
  std::set<std::string> types;
  if (schema["type"].is_array())
    types = schema["type"].get<std::set<std::string>>();
  else
    types = {schema["type"].get<std::string>()};
  const std::string type = type_of(value);
  EXPECT_TRUE(types.contains(type) || (type == "integer" && types.contains("number")))
      << at << " is a " << type;
  if (schema.contains("enum") && !value.is_null()) {
    EXPECT_NE(std::find(schema["enum"].begin(), schema["enum"].end(), value), schema["enum"].end())
        << at << " is " << value;
  }
  if (value.is_number() && schema.contains("minimum")) {
    EXPECT_GE(value.get<double>(), schema["minimum"].get<double>()) << at;
  }
  if (value.is_number() && schema.contains("maximum")) {
    EXPECT_LE(value.get<double>(), schema["maximum"].get<double>()) << at;
  }
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i)
      expect_valid(root, schema["items"], value[i], at + "/" + std::to_string(i));
  if (!value.is_object()) return;
  if (schema.contains("properties")) {
    std::vector<std::string> documented, found;
    for (const auto& [key, unused] : schema["properties"].items()) documented.push_back(key);
    for (const auto& [key, unused] : value.items()) found.push_back(key);
    ASSERT_EQ(found, documented) << at;
    EXPECT_EQ(schema.at("required").get<std::vector<std::string>>(), documented) << at;
    EXPECT_FALSE(schema.at("additionalProperties").get<bool>()) << at;
    for (const auto& [key, each] : value.items())
      expect_valid(root, schema["properties"][key], each, at + "/" + key);
  } else {
    for (const auto& [key, each] : value.items())
      expect_valid(root, schema["additionalProperties"], each, at + "/" + key);
  }
}

Json schema() {
  const auto text = read_file(RACKTWIN_SOURCE_DIR "/docs/summary.schema.json");
  EXPECT_TRUE(text.ok());
  return Json::parse(text.value());
}

TEST(SummaryJson, has_exactly_the_documented_keys_in_the_documented_order) {
  const Json root = schema();
  sim::RunResult partial = made_up_result();
  partial.partial = true;
  partial.partial_reason = "interrupted";
  partial.trace.reset();
  for (const sim::RunResult& result : {made_up_result(), made_up_empty_result(), partial})
    expect_valid(root, root, Json::parse(summary_json(result)), "");
}

TEST(SummaryJson, is_explained_key_by_key_in_the_document) {
  const auto text = read_file(RACKTWIN_SOURCE_DIR "/docs/summary_json.md");
  ASSERT_TRUE(text.ok());
  const Json root = schema();
  for (const auto& [key, unused] : root["properties"].items())
    EXPECT_TRUE(has(text.value(), "`" + key + "`")) << key;
}

TEST(SummaryJson, says_what_the_result_says) {
  const sim::RunResult result = made_up_result();
  const Json json = Json::parse(summary_json(result));
  const sim::Metrics& metrics = result.metrics;
  const auto near = [&](const char* key, double expected) {
    EXPECT_NEAR(json[key].get<double>(), expected, std::abs(expected) * 6e-6) << key;
  };
  near("duration", metrics.duration.in(unit::sec));
  near("output_throughput", metrics.output_throughput.in(unit::tok / unit::sec));
  near("request_throughput", metrics.request_throughput.in(unit::per_second));
  near("request_goodput", metrics.goodput.in(unit::per_second));
  near("mean_ttft_ms", metrics.ttft.mean / 1e6);
  near("median_ttft_ms", metrics.ttft.p50 / 1e6);
  near("p99_e2el_ms", metrics.e2e.p99 / 1e6);
  near("median_tpot_ms", metrics.tpot.p50 / 1e6);
  EXPECT_EQ(json["steady"]["to_s"], 280);
  EXPECT_EQ(json["completed"], 3960);
  EXPECT_EQ(json["failed"], 40);
  EXPECT_EQ(json["digest"], "0123456789abcdef");
  EXPECT_EQ(json["scenario"], result.scenario_yaml);
  EXPECT_EQ(json["std_tpot_ms"], nullptr);  // not kept
  EXPECT_EQ(json["slos"][0]["met"], true);
  EXPECT_EQ(json["slos"][1]["met"], false);
}

TEST(SummaryJson, counts_and_parts_add_up) {
  const Json json = Json::parse(summary_json(made_up_result()));
  const Json& requests = json["requests"];
  const auto count = [&](const char* key) { return requests[key].get<std::int64_t>(); };
  EXPECT_EQ(count("arrived"), count("completed") + count("shed") + count("unfinished"));
  std::int64_t reasons = 0;
  for (const auto& [reason, shed] : requests["shed_reasons"].items()) reasons += shed.get<int>();
  EXPECT_EQ(reasons, count("shed"));
  for (const Json& pool : json["pools"]) {
    double sum = 0, step = 0;
    for (const auto& [part, share] : pool["time"].items()) sum += share.get<double>();
    EXPECT_NEAR(sum, 1, 1e-5);
    for (const char* part : {"compute", "memory", "communication", "overhead"})
      step += pool["time_per_step_ms"][part].get<double>();
    EXPECT_NEAR(step, pool["time_per_step_ms"]["total"].get<double>(), step * 1e-5);
    const double busy = (1 - pool["time"]["idle"].get<double>()) * pool["replicas"].get<double>();
    EXPECT_NEAR(step * pool["steps"].get<double>(),
                busy * json["provenance"]["simulated_s"].get<double>() * 1e3, step * 100);
  }
}

TEST(SummaryJson, is_the_same_bytes_for_the_same_result_and_reads_back_to_them) {
  const std::string text = summary_json(made_up_result());
  EXPECT_EQ(text, summary_json(made_up_result()));
  EXPECT_EQ(Json::parse(text).dump(2) + "\n", text);
}

TEST(SummaryJson, rounds_to_six_digits_and_keeps_them) {
  EXPECT_EQ(number(1234567.89, "-"), "1234570");
  EXPECT_EQ(number(0.1 + 0.2, "-"), "0.3");
  EXPECT_EQ(number(123456, "-"), "123456");
  EXPECT_EQ(number(-0.0, "-"), "0");
  EXPECT_EQ(number(std::nan(""), "null"), "null");
  EXPECT_EQ(number(HUGE_VAL, ""), "");
}

TEST(SummaryJson, leaves_out_what_does_not_exist) {
  const Json json = Json::parse(summary_json(made_up_empty_result()));
  for (const char* key :
       {"mean_ttft_ms", "p99_tpot_ms", "request_throughput", "request_goodput", "output_throughput",
        "std_itl_ms", "max_e2el_ms", "steady", "transfers", "trace", "partial_reason"})
    EXPECT_TRUE(json[key].is_null()) << key;
  EXPECT_TRUE(json["slos"][0]["met"].is_null());
  EXPECT_TRUE(json["pools"][0]["reuse"].is_null());
}

TEST(SummaryJson, has_no_tpot_when_every_answer_is_one_token) {
  sim::RunResult result = made_up_result();
  result.metrics.tpot = {};
  result.metrics.itl = {};
  const Json json = Json::parse(summary_json(result));
  EXPECT_TRUE(json["mean_tpot_ms"].is_null());
  EXPECT_TRUE(json["p99_itl_ms"].is_null());
  EXPECT_FALSE(json["mean_ttft_ms"].is_null());
}

TEST(SummaryJson, has_no_goodput_where_no_bound_is_asked_for) {
  sim::RunResult result = made_up_result();
  result.metrics.slos = {{.name = "default", .ttft = {}, .tpot = {}, .e2e = {}, .requests = 9}};
  const Json json = Json::parse(summary_json(result));
  EXPECT_TRUE(json["request_goodput"].is_null());
  EXPECT_TRUE(json["slos"][0]["met"].is_null());
}

TEST(SummaryJson, survives_names_that_are_no_text) {
  sim::RunResult result = made_up_result();
  result.scenario_name = "\xff\xfe \"quoted\"\n";
  EXPECT_TRUE(Json::accept(summary_json(result)));
  EXPECT_TRUE(Json::accept(perfetto_trace(result)));
}

// --- text ---

TEST(SummaryText, tells_the_verdict_the_bottleneck_and_every_warning) {
  const sim::RunResult result = made_up_result();
  const std::string text = summary_text(result);
  EXPECT_TRUE(has(text, "interactive met: 99.5 %"));
  EXPECT_TRUE(has(text, "batch MISSED: 90.0 %"));
  EXPECT_TRUE(has(text, "TTFT <= 2 s, TPOT <= 25 ms; missed: TTFT 18"));
  EXPECT_TRUE(has(text, "decode pool: HBM bandwidth"));
  EXPECT_TRUE(has(text, "GEMM efficiency on GB300 is assumed"));
  EXPECT_TRUE(has(text, "4,000 arrived = 3,960 completed + 40 shed (30 queue full, 10 too long)"));
  EXPECT_TRUE(has(text, "59.0 % assumed"));
  EXPECT_TRUE(has(text, "0123456789abcdef"));
  expect_no_nan(text);
}

TEST(SummaryText, is_plain_unless_colour_is_asked_for) {
  EXPECT_FALSE(has(summary_text(made_up_result()), "\x1b"));
  const std::string coloured = summary_text(made_up_result(), {.colour = Colour::ansi});
  std::string plain;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b')
      i = coloured.find('m', i);
    else
      plain += coloured[i];
  }
  EXPECT_EQ(plain, summary_text(made_up_result()));
}

TEST(SummaryText, fits_a_hundred_columns) {
  std::istringstream lines(summary_text(made_up_result()));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(SummaryText, of_an_empty_or_stopped_run_says_so) {
  const std::string empty = summary_text(made_up_empty_result());
  expect_no_nan(empty);
  EXPECT_TRUE(has(empty, "no request of this class ended"));
  sim::RunResult partial = made_up_result();
  partial.partial = true;
  partial.partial_reason = "interrupted after 12 s";
  EXPECT_TRUE(has(summary_text(partial), "interrupted after 12 s"));
}

TEST(Numbers, are_written_for_people) {
  EXPECT_EQ(amount(0.012345), "0.0123");
  EXPECT_EQ(amount(4.5678), "4.57");
  EXPECT_EQ(amount(999.4), "999");
  EXPECT_EQ(amount(999.5), "1,000");
  EXPECT_EQ(amount(1234567), "1,234,567");
  EXPECT_EQ(amount(0), "0");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(grouped(123), "123");
  EXPECT_EQ(duration(12.3 * unit::us), "12.3 us");
  EXPECT_EQ(duration(1 * unit::ms), "1.00 ms");
  EXPECT_EQ(duration(300 * unit::sec), "300 s");
  EXPECT_EQ(duration(3 * unit::hour), "3.00 h");
  EXPECT_EQ(data_size(288 * unit::GB), "288 GB");
  EXPECT_EQ(percent(0.1234), "12.3 %");
}

TEST(Numbers, never_round_a_part_into_the_whole_or_into_nothing) {
  EXPECT_EQ(percent(1), "100.0 %");
  EXPECT_EQ(percent(0.999988), "99.999 %");
  EXPECT_EQ(percent(0.99967), "99.97 %");
  EXPECT_EQ(percent(0.9999999), "99.9999 %");
  EXPECT_EQ(bound(0.1 * unit::sec), "100 ms");
  EXPECT_EQ(bound(2.5 * unit::sec), "2.5 s");
  EXPECT_EQ(percent(0.0001), "<0.1 %");
  EXPECT_EQ(percent(0), "0.0 %");
}

// --- tables ---

TEST(RequestsCsv, rows_give_the_percentiles_of_the_summary) {
  const sim::RunResult result = made_up_result();
  const auto rows = cells(requests_csv(result));
  ASSERT_EQ(rows.size(), result.records.size() + 1);
  std::map<std::string, std::size_t> column;
  for (std::size_t i = 0; i < rows[0].size(); ++i) column[rows[0][i]] = i;
  std::vector<double> ttft;
  std::int64_t output = 0, completed = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), rows[0].size()) << i;
    const auto at = [&](const char* name) { return rows[i][column.at(name)]; };
    EXPECT_EQ(at("end") == "completed", !at("last_token_ms").empty());
    EXPECT_EQ(at("tpot_ms").empty(), at("end") != "completed" || at("output_tokens") == "1");
    if (at("end") != "completed") continue;
    ++completed;
    output += std::stoll(at("output_tokens"));
    ttft.push_back(std::stod(at("ttft_ms")));
    EXPECT_NEAR(std::stod(at("first_token_ms")) - std::stod(at("arrival_ms")), ttft.back(), 2e-6);
  }
  EXPECT_EQ(completed, result.metrics.counts.completed);
  EXPECT_EQ(output, result.metrics.output_tokens);
  const double exact = exact_percentile(ttft, 0.99), shown = result.metrics.ttft.p99 / 1e6;
  EXPECT_NEAR(shown, exact, exact / 256);
}

TEST(RequestsCsv, keeps_every_nanosecond) {
  sim::RunResult result = made_up_result();
  result.records.resize(1);
  result.records[0].arrival_ns = 9'007'199'254'740'993;  // more than a double can hold
  EXPECT_TRUE(has(requests_csv(result), ",9007199254.740993,"));
}

TEST(RequestsCsv, comes_back_from_its_compressed_frame) {
  const std::string text = requests_csv(made_up_result());
  const std::string frame = compressed(text);
  EXPECT_LT(frame.size(), text.size() / 2);
  std::string back(text.size(), '\0');
  EXPECT_EQ(ZSTD_decompress(back.data(), back.size(), frame.data(), frame.size()), text.size());
  EXPECT_EQ(back, text);
}

TEST(TimeseriesCsv, has_a_row_per_interval_and_empty_cells_for_gaps) {
  const sim::RunResult result = made_up_result();
  const auto rows = cells(timeseries_csv(result));
  ASSERT_EQ(rows.size(), result.series.time_s.size() + 1);
  for (const auto& row : rows) EXPECT_EQ(row.size(), 9 + 5 * result.pools.size());
  EXPECT_EQ(rows[0][9], "prefill.running");
  EXPECT_EQ(rows[1][6], "");  // no request had its first token yet
  EXPECT_NE(rows[4][6], "");
  expect_no_nan(timeseries_csv(result));
  EXPECT_EQ(cells(timeseries_csv(made_up_empty_result())).size(), 1u);
}

// --- trace ---

TEST(PerfettoTrace, has_every_slice_on_a_named_track) {
  const sim::RunResult result = made_up_result();
  const Json json = Json::parse(perfetto_trace(result));
  std::map<std::pair<int, int>, std::string> threads;
  std::map<int, std::string> processes;
  std::size_t slices = 0, counters = 0;
  for (const Json& event : json["traceEvents"]) {
    const auto phase = event["ph"].get<std::string>();
    const int process = event["pid"];
    if (phase == "M" && event["name"] == "thread_name")
      threads[{process, event["tid"]}] = event["args"]["name"];
    if (phase == "M" && event["name"] == "process_name") processes[process] = event["args"]["name"];
    if (phase == "C") {
      ++counters;
      EXPECT_TRUE(event["args"]["value"].is_number());
    }
    if (phase == "X") {
      const sim::Slice& slice = result.slices[slices++];
      EXPECT_EQ(processes.at(process) + "/" + threads.at({process, event["tid"]}), slice.track);
      EXPECT_NEAR(event["ts"].get<double>() * 1e3, double(slice.start_ns), 0.5);
      EXPECT_EQ(event.contains("args"), !slice.arguments.empty());
    }
  }
  EXPECT_EQ(slices, result.slices.size());
  EXPECT_GT(counters, 1000u);
  EXPECT_TRUE(Json::accept(perfetto_trace(made_up_empty_result())));
}

// --- files ---

TEST(WriteReports, leaves_the_files_it_names) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("racktwin-report-" + std::to_string(::getpid()));
  const auto written = write_reports(made_up_result(), folder.string());
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written.value().size(), 5u);
  for (const std::string& path : written.value()) EXPECT_GT(std::filesystem::file_size(path), 0u);
  std::filesystem::remove_all(folder);
}

TEST(WriteReports, refuses_a_folder_that_cannot_be) {
  const auto written = write_reports(made_up_result(), "/dev/null/out");
  ASSERT_FALSE(written.ok());
  EXPECT_TRUE(has(written.error().text(), "/dev/null/out"));
}

}  // namespace
}  // namespace racktwin::report
