#include <fmt/format.h>

#include <cmath>

#include "base/embedded.hpp"
#include "report/json_text.hpp"
#include "report/numbers.hpp"
#include "report/report.hpp"

namespace racktwin::report {
namespace {

using sim::RunResult;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// JSON inside <script>: no "</script>" and no "<!--" can end or open anything there.
std::string inside_script(std::string json) {
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos;)
    json.replace(at, 1, "\\u003c");
  return json;
}

// The distribution's curve for the screen: [upper edge of a bin, values up to it], at most
// one point for each 1/500 of the values or 1/500 of the logarithmic range.
std::string curve(const sim::Distribution& distribution, Seconds unit_of_axis) {
  constexpr double resolution = 500;
  const std::vector<Histogram::Bin> bins = distribution.histogram.bins();
  if (bins.empty()) return "null";
  const auto all = static_cast<double>(distribution.histogram.count());
  const auto place = [](std::int64_t value) { return std::log(1.0 + static_cast<double>(value)); };
  const double range = place(bins.back().high) - place(bins.front().low);
  std::vector<double> levels, parts;
  std::int64_t seen = 0, last_seen = 0;
  double last_place = -1;
  for (const Histogram::Bin& bin : bins) {
    seen += bin.count;
    const bool far = place(bin.high) - last_place > range / resolution;
    const bool high = static_cast<double>(seen - last_seen) > all / resolution;
    if (!far && !high && &bin != &bins.back()) continue;
    const std::int64_t top = std::min(bin.high - 1, distribution.histogram.max());
    levels.push_back((static_cast<double>(top) * unit::ns).in(unit_of_axis));
    parts.push_back(static_cast<double>(seen) / all);
    last_seen = seen;
    last_place = place(bin.high);
  }
  return fmt::format(R"({{"level":{},"part":{}}})", json_numbers(levels), json_numbers(parts));
}

std::string series(const RunResult& result) {
  const sim::Series& all = result.series;
  std::string text = fmt::format(
      R"({{"interval_s":{},"time_s":{},"arrivals":{},"completions":{},"output_tokens_per_s":{},)"
      R"("input_tokens_per_s":{},"concurrency":{},"ttft_p50_ms":{},"ttft_p99_ms":{},)"
      R"("tpot_p50_ms":{},"pools":[)",
      number(all.interval.in(unit::sec), "null"), json_numbers(all.time_s),
      json_numbers(all.arrivals), json_numbers(all.completions),
      json_numbers(all.output_tokens_per_s), json_numbers(all.input_tokens_per_s),
      json_numbers(all.concurrency), json_numbers(all.ttft_p50_ms), json_numbers(all.ttft_p99_ms),
      json_numbers(all.tpot_p50_ms));
  for (const sim::Series::PoolSeries& pool : all.pools) {
    if (&pool != &all.pools.front()) text += ',';
    text +=
        fmt::format(R"({{"running":{},"waiting":{},"kv_used":{},"reuse":{},"busy":{}}})",
                    json_numbers(pool.running), json_numbers(pool.waiting),
                    json_numbers(pool.kv_used), json_numbers(pool.reuse), json_numbers(pool.busy));
  }
  return text + "]}";
}

std::string rack_gpus(const RunResult& result) {
  std::string text = "[";
  for (const sim::RackUse& rack : result.rack_use) {
    if (text.size() > 1) text += ',';
    text += json_numbers(rack.gpu_utilisation);
  }
  return text + "]";
}

// All that the page shows: summary.json itself, and what is too long for it.
std::string page_data(const RunResult& result) {
  const sim::Metrics& metrics = result.metrics;
  return fmt::format(
      R"({{"summary":{},"series":{},"curves":{{"ttft":{},"tpot":{},"itl":{},"e2el":{}}},)"
      R"("gpu_utilisation":{}}})",
      summary_json(result), series(result), curve(metrics.ttft, unit::ms),
      curve(metrics.tpot, unit::ms), curve(metrics.itl, unit::ms), curve(metrics.e2e, unit::ms),
      rack_gpus(result));
}

}  // namespace

std::string report_html(const RunResult& result) {
  const std::optional<std::string_view> script = embedded_file("web/dist/report.js");
  const std::optional<std::string_view> style = embedded_file("web/dist/report.css");
  const bool bundle = script && style;
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{} - Racktwin</title>\n",
      escaped(result.scenario_name));
  if (bundle) page += fmt::format("<style>\n{}</style>\n", *style);
  page += "</head>\n<body>\n<main id=\"report\">\n";
  if (!bundle)
    page +=
        "<p>This program was built without its charts (web/build.sh before the build adds "
        "them); the summary is complete.</p>\n";
  page += fmt::format("<pre>{}</pre>\n</main>\n", escaped(summary_text(result)));
  if (bundle)
    page += fmt::format(
        "<script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{}</script>\n",
        inside_script(page_data(result)), *script);
  return page + "</body>\n</html>\n";
}

}  // namespace racktwin::report
