// The page as text, and as Chromium shows it: no error, nothing loaded, every figure that of
// summary.json, charts and map drawn, keys working.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/embedded.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "report/made_up_result.hpp"
#include "report/report.hpp"

namespace racktwin::report {
namespace {

using Json = nlohmann::ordered_json;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

std::string between(const std::string& text, std::string_view from, std::string_view to) {
  const std::size_t start = text.find(from);
  if (start == std::string::npos) return {};
  const std::size_t first = start + from.size();
  return text.substr(first, text.find(to, first) - first);
}

bool bundle_is_embedded() {
  return embedded_file("web/dist/report.js") && embedded_file("web/dist/report.css");
}

sim::RunResult stopped_result() {
  sim::RunResult result = made_up_result();
  result.partial = true;
  result.partial_reason = "interrupted after 12 s";
  result.metrics.tpot = {};  // one-token answers only
  result.metrics.itl = {};
  result.trace.reset();
  result.transfers = {};
  return result;
}

TEST(ReportHtml, is_one_file_that_may_load_nothing) {
  if (!bundle_is_embedded()) GTEST_SKIP() << "web/dist was not built (web/build.sh)";
  const std::string page = report_html(made_up_result());
  EXPECT_TRUE(has(page, "Content-Security-Policy\" content=\"default-src 'none'"));
  for (const char* load : {" src=", "@import", "url(http", "href=\"http", "fetch(",
                           "XMLHttpRequest", "import(", "WebSocket", "sendBeacon"})
    EXPECT_FALSE(has(page, load)) << load;
  EXPECT_EQ(count(page, "<link"), 1u);  // the empty icon, so that none is asked for
}

TEST(ReportHtml, carries_the_summary_and_cannot_be_broken_out_of) {
  if (!bundle_is_embedded()) GTEST_SKIP() << "web/dist was not built (web/build.sh)";
  sim::RunResult result = made_up_result();
  result.scenario_name = "</title><script>alert(1)</script>";
  result.warnings.push_back("<!--<script>");
  const std::string page = report_html(result);
  EXPECT_EQ(count(page, "<script"), 2u);
  EXPECT_EQ(count(page, "</script>"), 2u);
  EXPECT_EQ(count(page, "</title>"), 1u);
  const std::string data = between(page, "id=\"data\">", "</script>");
  EXPECT_EQ(Json::parse(data)["summary"], Json::parse(summary_json(result)));
}

TEST(ReportHtml, draws_a_curve_that_rises_to_one) {
  if (!bundle_is_embedded()) GTEST_SKIP() << "web/dist was not built (web/build.sh)";
  const sim::RunResult result = made_up_result();
  const Json data = Json::parse(between(report_html(result), "id=\"data\">", "</script>"));
  for (const auto& [name, curve] : data["curves"].items()) {
    const auto levels = curve["level"].get<std::vector<double>>();
    const auto parts = curve["part"].get<std::vector<double>>();
    ASSERT_EQ(levels.size(), parts.size());
    EXPECT_LE(levels.size(), 1100u) << name;
    EXPECT_TRUE(std::is_sorted(levels.begin(), levels.end())) << name;
    EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end())) << name;
    EXPECT_EQ(parts.back(), 1) << name;
    const double largest = data["summary"]["max_" + name + "_ms"].get<double>();
    EXPECT_NEAR(levels.back(), largest, largest / 200) << name;
    // Where it crosses the half is the median.
    const auto half = std::lower_bound(parts.begin(), parts.end(), 0.5) - parts.begin();
    const double median = data["summary"]["median_" + name + "_ms"].get<double>();
    EXPECT_NEAR(levels[static_cast<std::size_t>(half)], median, median * 0.03) << name;
  }
}

TEST(ReportHtml, merges_long_series_without_changing_their_mean) {
  if (!bundle_is_embedded()) GTEST_SKIP() << "web/dist was not built (web/build.sh)";
  sim::RunResult result = made_up_result();
  sim::Series& series = result.series;
  series = {.interval = 1 * unit::sec};
  for (int i = 0; i < 86400; ++i) {
    series.time_s.push_back(i);
    series.arrivals.push_back(i % 7);
    series.ttft_p50_ms.push_back(i < 150 ? std::numeric_limits<double>::quiet_NaN() : 5);
  }
  const Json data = Json::parse(between(report_html(result), "id=\"data\">", "</script>"));
  const Json& shown = data["series"];
  EXPECT_EQ(shown["merged"], 120);
  EXPECT_LE(shown["time_s"].size(), 720u);
  double sum = 0;
  for (const Json& each : shown["arrivals"]) sum += each.get<double>();
  EXPECT_NEAR(sum / static_cast<double>(shown["arrivals"].size()), 3, 0.01);
  EXPECT_TRUE(shown["ttft_p50_ms"][0].is_null());
  EXPECT_EQ(shown["ttft_p50_ms"][1], 5);
}

// --- in the browser ---

std::string chromium() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    for (const char* folder : {"/usr/bin/", "/usr/local/bin/", "/snap/bin/"})
      if (std::filesystem::exists(std::string(folder) + name)) return std::string(folder) + name;
  return {};
}

struct Shown {
  std::string page;     // <main>, after its scripts have run
  std::string console;  // what Chromium logged
  Json check;           // what the probe below found
};

// Errors are caught from the first script on; then every table is opened, a chart and the map
// are steered by keys, and what they say is left in an attribute.
constexpr const char* catcher = R"(<head><script>
window.faults = [];
addEventListener('error', (event) => faults.push(String(event.message)));
addEventListener('unhandledrejection', (event) => faults.push(String(event.reason)));
</script>)";
constexpr const char* probe = R"(<script>
setTimeout(() => {
  const key = (target, name) => target.dispatchEvent(
      new KeyboardEvent('keydown', {key: name, bubbles: true, cancelable: true}));
  document.querySelectorAll('details').forEach((details) => { details.open = true; });
  const map = document.querySelector('.map');
  const said = [];
  if (map) for (const name of ['ArrowRight', 'ArrowRight', 'ArrowDown', 'Enter', 'ArrowDown', 'Escape']) {
    key(map, name);
    said.push(map.querySelector('[role=status]').textContent);
  }
  const plot = document.querySelector('.plot');
  if (plot) key(plot, 'End');
  setTimeout(() => {
    window.legend = plot ? plot.querySelector('.u-legend').textContent : '';
    document.querySelector('.theme').click();
  }, 300);
  setTimeout(() => {
    const canvases = [...document.querySelectorAll('.plot canvas, .map canvas')];
    const drawn = (canvas) => canvas.width > 0 && canvas.height > 0 && canvas.getContext('2d')
        .getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte !== 0);
    document.documentElement.setAttribute('data-check', encodeURIComponent(JSON.stringify({
      faults, said, canvases: canvases.length, blank: canvases.filter((canvas) => !drawn(canvas)).length,
      legend,
      unlabelled: document.querySelectorAll('[role=img]:not([aria-label]), .plot:not([tabindex]), table th:not([scope]):not(.uplot th)').length,
      overflow: document.documentElement.scrollWidth - innerWidth,
    })));
  }, 600);
}, 500);
</script></body>)";

std::string output_of(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 1 << 16> chunk;
  for (std::size_t size; (size = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
    text.append(chunk.data(), size);
  ::pclose(pipe);
  return text;
}

std::string decoded(const std::string& text) {  // of encodeURIComponent
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

Shown shown(const sim::RunResult& result, const std::string& name) {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("racktwin-page-{}-{}", ::getpid(), name);
  std::string page = report_html(result);
  page.replace(page.find("<head>"), 6, catcher);
  page.replace(page.rfind("</body>"), 7, probe);
  const std::string file = (folder / "report.html").string();
  EXPECT_TRUE(write_file(file, page).ok());
  Shown found;
  found.page = output_of(fmt::format(
      "timeout 120 {} --headless --no-sandbox --disable-gpu --window-size=1366,768 "
      "--user-data-dir='{}' --enable-logging=stderr --virtual-time-budget=20000 --dump-dom "
      "'file://{}' 2>'{}'",
      chromium(), (folder / "profile").string(), file, (folder / "log").string()));
  found.console = read_file((folder / "log").string()).value();
  const std::string check = decoded(between(found.page, "data-check=\"", "\""));
  EXPECT_FALSE(check.empty()) << found.console << found.page.substr(0, 2000);
  found.check = Json::parse(check.empty() ? "{}" : check);
  found.page = between(found.page, "<main", "</main>");
  std::filesystem::remove_all(folder);
  return found;
}

// What a figure says, in the unit of its key: "1.23 s" of a key in ms is 1230.
std::optional<double> said(const std::string& key, std::string text) {
  std::string digits;
  std::size_t end = 0;
  for (; end < text.size() && (has("0123456789.,-+e", text.substr(end, 1)) && text[end] != ' ');
       ++end)
    if (text[end] != ',') digits += text[end];
  const std::optional<double> number = parse_number(digits);
  if (!number) return std::nullopt;
  const std::string name = end < text.size() ? text.substr(end + 1) : "";
  const std::map<std::string, double> milliseconds = {
      {"µs", 1e-3}, {"ms", 1}, {"s", 1e3}, {"min", 6e4}, {"h", 3.6e6}};
  const std::map<std::string, double> gigabytes = {
      {"kB", 1e-6}, {"MB", 1e-3}, {"GB", 1}, {"TB", 1e3}, {"PB", 1e6}};
  if (name == "%") return *number / 100;
  if (gigabytes.contains(name)) return *number * gigabytes.at(name);
  if (milliseconds.contains(name))
    return *number * milliseconds.at(name) / (key.ends_with("_s") ? 1e3 : 1);
  return number;
}

// Every figure on the page against summary.json; gives back the keys that were shown.
std::set<std::string> expect_figures(const std::string& page, const Json& summary) {
  std::set<std::string> keys;
  constexpr std::string_view mark = "data-key=\"";
  for (std::size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    const std::string rest = page.substr(at, 400);
    const std::string key = between(rest, mark, "\"");
    const std::string text = between(rest, ">", "<");
    std::string path = "/" + key;
    std::replace(path.begin(), path.end(), '.', '/');
    const Json& value = summary.at(Json::json_pointer(path));
    keys.insert(key);
    if (value.is_null()) {
      EXPECT_EQ(text, "–") << key;
      continue;
    }
    const std::optional<double> number = said(key, text);
    const double expected = value.get<double>();
    if (text == "&lt;0.1 %") {
      EXPECT_LT(expected, 0.0005) << key;
      continue;
    }
    EXPECT_TRUE(number.has_value()) << key << " says " << text;
    const bool share = has(text, "%");
    EXPECT_NEAR(number.value_or(-1), expected, share ? 5.1e-4 : std::abs(expected) * 5.1e-3 + 1e-9)
        << key << " says " << text;
  }
  return keys;
}

TEST(ReportInBrowser, shows_the_figures_of_summary_json_without_an_error) {
  if (chromium().empty()) GTEST_SKIP() << "no Chromium here: the page was not opened";
  if (!bundle_is_embedded()) GTEST_SKIP() << "web/dist was not built (web/build.sh)";
  const sim::RunResult result = made_up_result();
  const Shown found = shown(result, "whole");
  EXPECT_FALSE(has(found.console, "CONSOLE")) << found.console;
  EXPECT_EQ(found.check["faults"], Json::array());
  const auto keys = expect_figures(found.page, Json::parse(summary_json(result)));
  for (const char* latency : {"ttft", "tpot", "itl", "e2el"})
    for (const char* figure : {"mean", "median", "p90", "p95", "p99", "max"})
      EXPECT_TRUE(keys.contains(fmt::format("{}_{}_ms", figure, latency))) << figure << latency;
  for (const char* key :
       {"output_throughput", "total_token_throughput", "request_throughput", "request_goodput",
        "slos.1.reached", "pools.1.time.memory", "pools.1.kv_used_peak", "pools.0.reuse",
        "transfers.gb", "racks.63.utilisation", "trace.scaled.cv", "max_concurrent_requests",
        "provenance.time_by_origin.assumed", "pools.1.typical_step.4.total_ms"})
    EXPECT_TRUE(keys.contains(key)) << key;
  EXPECT_FALSE(has(found.page, "NaN"));
  EXPECT_FALSE(has(found.page, "undefined"));
}

TEST(ReportInBrowser, draws_every_chart_and_answers_to_the_keyboard) {
  if (chromium().empty()) GTEST_SKIP() << "no Chromium here: the page was not opened";
  if (!bundle_is_embedded()) GTEST_SKIP() << "web/dist was not built (web/build.sh)";
  const Json check = shown(made_up_result(), "keys").check;
  EXPECT_EQ(check["canvases"], 5 + 4 + 2 * 3 + 1);  // load, latency, pools, map
  EXPECT_EQ(check["blank"], 0);
  EXPECT_EQ(check["unlabelled"], 0);
  EXPECT_LE(check["overflow"].get<int>(), 0);  // nothing wider than a laptop
  const auto words = check["said"].get<std::vector<std::string>>();
  ASSERT_EQ(words.size(), 6u);
  EXPECT_TRUE(words[0].starts_with("Rack 0 (prefill): ")) << words[0];
  EXPECT_TRUE(words[1].starts_with("Rack 1 (prefill): ")) << words[1];
  EXPECT_TRUE(has(words[3], ", GPU 0 (tray 0): ")) << words[3];
  EXPECT_TRUE(has(words[4], ", GPU 4 (tray 1): ")) << words[4];
  EXPECT_FALSE(has(words[5], "GPU 4")) << words[5];
  EXPECT_TRUE(has(check["legend"].get<std::string>(), "5:00")) << check["legend"];
}

TEST(ReportInBrowser, shows_empty_and_stopped_runs_without_an_error) {
  if (chromium().empty()) GTEST_SKIP() << "no Chromium here: the page was not opened";
  if (!bundle_is_embedded()) GTEST_SKIP() << "web/dist was not built (web/build.sh)";
  for (const sim::RunResult& result : {made_up_empty_result(), stopped_result()}) {
    const Shown found = shown(result, "rest");
    EXPECT_FALSE(has(found.console, "CONSOLE")) << found.console;
    EXPECT_EQ(found.check["faults"], Json::array());
    expect_figures(found.page, Json::parse(summary_json(result)));
    EXPECT_FALSE(has(found.page, "NaN"));
    EXPECT_EQ(has(found.page, "Partial run"), result.partial);
  }
}

}  // namespace
}  // namespace racktwin::report
