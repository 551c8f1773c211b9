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

// More samples than a screen has columns are drawn as means of `merged` neighbours.
constexpr std::size_t samples_shown = 720;

std::size_t merged(const sim::Series& series) {
  return (series.time_s.size() + samples_shown - 1) / samples_shown;
}

// The mean of each group of neighbours, of those that are numbers.
std::string samples(const std::vector<double>& values, std::size_t group) {
  if (group <= 1) return json_numbers(values);
  std::vector<double> means;
  for (std::size_t first = 0; first < values.size(); first += group) {
    double sum = 0;
    int count = 0;
    for (std::size_t i = first; i < std::min(first + group, values.size()); ++i) {
      if (!std::isfinite(values[i])) continue;
      sum += values[i];
      ++count;
    }
    means.push_back(sum / count);  // NaN of none
  }
  return json_numbers(means);
}

std::string series(const RunResult& result) {
  const sim::Series& all = result.series;
  const std::size_t group = merged(all);
  std::string text = fmt::format(R"({{"interval_s":{},"merged":{})",
                                 number(all.interval.in(unit::sec), "null"), group);
  const auto add = [&](const char* name, const std::vector<double>& values) {
    text += fmt::format(R"(,"{}":{})", name, samples(values, group));
  };
  add("time_s", all.time_s);
  add("arrivals", all.arrivals);
  add("completions", all.completions);
  add("output_tokens_per_s", all.output_tokens_per_s);
  add("input_tokens_per_s", all.input_tokens_per_s);
  add("concurrency", all.concurrency);
  add("ttft_p50_ms", all.ttft_p50_ms);
  add("ttft_p99_ms", all.ttft_p99_ms);
  add("tpot_p50_ms", all.tpot_p50_ms);
  text += R"(,"pools":[)";
  for (std::size_t i = 0; i < all.pools.size(); ++i) {
    const sim::Series::PoolSeries& pool = all.pools[i];
    text += fmt::format(R"({}{{"index":{})", i == 0 ? "" : ",", i);
    add("running", pool.running);
    add("waiting", pool.waiting);
    add("kv_used", pool.kv_used);
    add("reuse", pool.reuse);
    add("busy", pool.busy);
    text += '}';
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
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
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
