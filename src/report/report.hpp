// What a run found, in the forms people and programs read. Formats and computes nothing:
// every figure is one of sim::RunResult, turned into a unit and rounded.
//
// A figure that does not exist is absent, never 0 or NaN: null in JSON, an empty cell in CSV,
// "-" in text. That is so for latencies of no request, for TPOT where every answer has one
// token, for rates of a run without duration, and for goodput where no objective is set.
//
// Pure functions; equal results give equal bytes. Names and units: docs/summary_json.md (with
// docs/summary.schema.json, which a test holds the output against) and docs/report.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sim/result.hpp"

namespace racktwin::report {

enum class Colour : std::uint8_t { none, ansi };
struct TextStyle {
  Colour colour = Colour::none;
};

// For a terminal at least 100 columns wide. ASCII, but for names that are not.
std::string summary_text(const sim::RunResult&, const TextStyle& = {});

// Indented by two; keys in documented order; doubles rounded to 6 significant digits. Where
// `vllm bench serve --save-result` has a name for a figure, that is the name, at the top level.
std::string summary_json(const sim::RunResult&);

// One row per record, in the order of the records; times in ms from the start of the run, with
// six decimals, so that the clock's nanoseconds are kept.
std::string requests_csv(const sim::RunResult&);

// One row per interval of the series, pools side by side ("decode.kv_used").
std::string timeseries_csv(const sim::RunResult&);

// Chrome trace events, for ui.perfetto.dev: a track per Slice::track, counters of the series.
std::string perfetto_trace(const sim::RunResult&);

// One self-contained page; loads nothing. Needs the web bundle in the binary: without it
// (web/build.sh was not run before the build) the page is the text summary, and says so.
std::string report_html(const sim::RunResult&);

// A zstd frame of `text`, with its size and checksum.
std::string compressed(std::string_view text);

// Writes all of the above into `directory`: report.html, summary.json, timeseries.csv,
// trace.json and, where records were kept, requests.csv.zst. Gives back the paths written.
Result<std::vector<std::string>> write_reports(const sim::RunResult&, const std::string& directory);

}  // namespace racktwin::report
