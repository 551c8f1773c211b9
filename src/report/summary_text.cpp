#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/numbers.hpp"
#include "report/report.hpp"

namespace racktwin::report {
namespace {

using sim::Distribution;
using sim::Metrics;
using sim::PoolResult;
using sim::RunResult;

enum class Tone : std::uint8_t { plain, strong, faint, good, bad, warn };

class Page {
 public:
  explicit Page(const TextStyle& style) : style_(style) {}

  std::string toned(Tone tone, std::string text) const {
    constexpr std::array<const char*, 6> codes = {"", "1", "2", "1;32", "1;31", "33"};
    if (style_.colour == Colour::none || tone == Tone::plain) return text;
    return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(tone)], text);
  }
  void line(const std::string& text) { text_ += text + '\n'; }
  void heading(const std::string& text) { line('\n' + toned(Tone::strong, text)); }

  // `text` after `label`, wrapped at 100 columns with a hanging indent.
  void item(const std::string& label, const std::string& text, Tone tone = Tone::plain) {
    constexpr std::size_t indent = 12, columns = 100;
    std::string row = label;
    row.resize(std::max(indent, label.size() + 1), ' ');
    std::string words = text, out;
    std::size_t room = columns - row.size();
    while (words.size() > room) {
      const std::size_t blank = words.rfind(' ', room);
      if (blank == std::string::npos || blank == 0) break;
      out += words.substr(0, blank) + '\n' + std::string(indent, ' ');
      words.erase(0, blank + 1);
      room = columns - indent;
    }
    line(toned(Tone::faint, row) + toned(tone, out + words));
  }

  // First column to the left, the others to the right; the first row is the heading.
  void table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows)
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (i >= widths.size()) widths.push_back(0);
        widths[i] = std::max(widths[i], row[i].size());
      }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::string out;
      for (std::size_t i = 0; i < rows[r].size(); ++i)
        out += i == 0 ? fmt::format("  {:<{}}", rows[r][i], widths[i])
                      : fmt::format("  {:>{}}", rows[r][i], widths[i]);
      line(toned(r == 0 ? Tone::faint : Tone::plain, out));
    }
  }
  std::string take() { return std::move(text_); }

 private:
  TextStyle style_;
  std::string text_;
};

std::string joined(const std::map<std::string, std::int64_t>& counts) {
  std::string text;
  for (const auto& [reason, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(count), reason);
  return text;
}

std::string bounds(const sim::SloOutcome& slo) {
  std::string text;
  const auto add = [&](const char* name, const std::optional<Seconds>& bound) {
    if (bound)
      text += fmt::format("{}{} <= {}", text.empty() ? "" : ", ", name, report::bound(*bound));
  };
  add("TTFT", slo.ttft);
  add("TPOT", slo.tpot);
  add("E2E", slo.e2e);
  return text;
}

void title(Page& page, const RunResult& result) {
  page.line(page.toned(Tone::strong, result.scenario_name) +
            page.toned(Tone::faint, fmt::format("  racktwin {}, seed {}, digest {}", result.version,
                                                result.seed, hexadecimal(result.digest))));
  page.item("cluster",
            fmt::format("{} ({} B parameters, {} B active) on {} of {} {} GPUs, {} {} of {}",
                        result.model, amount(double(result.model_parameters) / 1e9),
                        amount(double(result.model_active) / 1e9), grouped(result.gpus_used),
                        grouped(result.gpus), result.gpu, grouped(result.racks),
                        result.racks == 1 ? "rack" : "racks", result.system));
  if (result.partial)
    page.item("PARTIAL", result.partial_reason + "; what follows is what was known by then",
              Tone::bad);
  for (const std::string& warning : result.warnings) page.item("warning", warning, Tone::warn);
}

std::string with_unit(double value, const char* unit) {
  return std::isfinite(value) ? fmt::format("{} {}", amount(value), unit) : std::string("-");
}

void headline(Page& page, const RunResult& result) {
  const Metrics& metrics = result.metrics;
  const auto tokens = [&](TokensPerSecond rate_of) {
    return with_unit(rate(metrics, rate_of.in(unit::tok / unit::sec)), "tok/s");
  };
  page.line("");
  if (has_steady(metrics)) {
    const Metrics::Steady& steady = metrics.steady;
    page.item("delivers",
              fmt::format("{} output ({} per GPU in use), {}, while load is on it ({} to {})",
                          with_unit(steady.output.in(unit::tok / unit::sec), "tok/s"),
                          with_unit(steady.output_per_gpu.in(unit::tok / unit::sec), "tok/s"),
                          with_unit(steady.completed.in(unit::per_second), "requests/s"),
                          duration(steady.from), duration(steady.to)),
              Tone::strong);
  }
  page.item(
      has_steady(metrics) ? "to the end" : "delivers",
      fmt::format(
          "{} output ({} per GPU in use), {} input, {}", tokens(metrics.output_throughput),
          tokens(metrics.output_per_gpu), tokens(metrics.input_throughput),
          with_unit(rate(metrics, metrics.request_throughput.in(unit::per_second)), "requests/s")),
      has_steady(metrics) ? Tone::plain : Tone::strong);
  for (const sim::SloOutcome& slo : metrics.slos) {
    if (!has_bound(slo)) {
      page.item("SLO", fmt::format("{}: no bound asked for", slo.name));
    } else if (slo.requests == 0) {
      page.item("SLO", fmt::format("{}: no request of this class ended", slo.name));
    } else {
      page.item("SLO",
                fmt::format("{} {}: {} of {} requests good, {} asked", slo.name,
                            slo.met() ? "met" : "MISSED", percent(slo.reached()),
                            grouped(slo.requests), percent(slo.attainment)),
                slo.met() ? Tone::good : Tone::bad);
      page.item(
          "", bounds(slo) + (slo.good == slo.requests
                                 ? "; none missed"
                                 : fmt::format("; missed: TTFT {}, TPOT {}, E2E {}, not served {}",
                                               grouped(slo.missed_ttft), grouped(slo.missed_tpot),
                                               grouped(slo.missed_e2e), grouped(slo.not_served))));
    }
  }
  if (const double good = goodput(metrics, metrics.goodput.in(unit::per_second));
      std::isfinite(good))
    page.item("goodput",
              fmt::format("{}, {}", with_unit(good, "requests/s"), tokens(metrics.goodput_tokens)));
  if (!result.bottleneck.sentence.empty()) page.item("bottleneck", result.bottleneck.sentence);
}

void requests(Page& page, const RunResult& result) {
  const sim::Counts& counts = result.metrics.counts;
  const std::string reasons = joined(counts.shed_reasons);
  page.item("requests",
            fmt::format("{} arrived = {} completed + {} shed{} + {} unfinished",
                        grouped(counts.arrived), grouped(counts.completed), grouped(counts.shed),
                        reasons.empty() ? "" : " (" + reasons + ")", grouped(counts.unfinished)));
  page.item("in flight", fmt::format("{} requests in the mean, {} at the peak; rates are over {}",
                                     amount(result.metrics.concurrency_mean),
                                     grouped(result.metrics.concurrency_peak),
                                     duration(result.metrics.duration)));
}

void latencies(Page& page, const Metrics& metrics) {
  std::vector<std::vector<std::string>> rows = {
      {"latency", "mean", "p50", "p90", "p95", "p99", "max"}};
  const auto add = [&](const char* name, const Distribution& distribution, auto&& text) {
    std::vector<std::string> row = {name};
    for (const double figure : {distribution.mean, distribution.p50, distribution.p90,
                                distribution.p95, distribution.p99, distribution.max})
      row.push_back(distribution.histogram.count() ? text(figure) : "-");
    rows.push_back(std::move(row));
  };
  const auto time = [](double ns) { return duration(ns * unit::ns); };
  const auto tokens = [](double count) { return amount(count) + " tok"; };
  add("TTFT", metrics.ttft, time);
  add("TPOT", metrics.tpot, time);
  add("ITL", metrics.itl, time);
  add("E2E", metrics.e2e, time);
  add("queue", metrics.queue_time, time);
  add("input", metrics.isl, tokens);
  add("output", metrics.osl, tokens);
  page.line("");
  page.table(rows);
}

void pools(Page& page, const RunResult& result) {
  if (result.pools.empty()) return;
  std::vector<std::vector<std::string>> shapes = {{"pool", "role", "replicas", "shape", "GPUs",
                                                   "engine", "weights/GPU", "KV/GPU", "KV blocks"}};
  std::vector<std::vector<std::string>> times = {{"GPU time", "compute", "HBM", "network",
                                                  "overhead", "idle", "step", "seq/step",
                                                  "tok/step"}};
  std::vector<std::vector<std::string>> caches = {{"cache, queue", "KV mean", "KV peak", "reuse",
                                                   "queue mean", "queue peak", "preempted",
                                                   "restarts"}};
  for (const PoolResult& pool : result.pools) {
    const sim::TimeSplit& time = pool.time;
    const auto of_steps = [&](double value) { return pool.steps ? amount(value) : "-"; };
    shapes.push_back({pool.name, name(pool.role), grouped(pool.replicas), shape(pool.parallelism),
                      grouped(pool.gpus), pool.engine, data_size(pool.memory.weights),
                      data_size(pool.memory.kv), grouped(pool.kv_blocks)});
    times.push_back({pool.name, percent(time.compute), percent(time.memory),
                     percent(time.communication), percent(time.overhead), percent(time.idle),
                     pool.steps ? duration(pool.per_step(busy(time), result.simulated)) : "-",
                     of_steps(pool.batch_mean), of_steps(pool.tokens_per_step)});
    caches.push_back({pool.name, percent(pool.kv_used_mean), percent(pool.kv_used_peak),
                      pool.reuse() ? percent(*pool.reuse()) : "-", amount(pool.queue_mean),
                      grouped(pool.queue_peak), grouped(pool.preemptions), grouped(pool.restarts)});
  }
  for (const auto& rows : {shapes, times, caches}) {
    page.line("");
    page.table(rows);
  }
}

void transfers(Page& page, const sim::Transfers& transfers) {
  if (transfers.count == 0) return;
  const auto text = [](const Distribution& distribution, double ns) {
    return distribution.histogram.count() ? duration(ns * unit::ns) : "-";
  };
  page.line("");
  page.item("KV moved",
            fmt::format("{} transfers, {}; {} in the mean, p99 {}; wait for a decode slot {} in "
                        "the mean, p99 {}; {} inside one NVLink domain",
                        grouped(transfers.count), data_size(transfers.bytes),
                        text(transfers.duration, transfers.duration.mean),
                        text(transfers.duration, transfers.duration.p99),
                        text(transfers.wait_for_slot, transfers.wait_for_slot.mean),
                        text(transfers.wait_for_slot, transfers.wait_for_slot.p99),
                        percent(transfers.inside_domain)));
}

void trace(Page& page, const workload::TraceInfo& info) {
  page.heading(fmt::format("Trace: {} format, time in {}{}", info.format, info.time_unit,
                           info.closed_loop ? ", closed-loop sessions" : ""));
  std::vector<std::vector<std::string>> rows = {
      {"", "requests", "span", "gap CV", "var/mean 10 s", "ISL p50", "OSL p50", "reuse"}};
  const auto add = [&](const char* label, const workload::TraceStats& stats) {
    rows.push_back({label, grouped(stats.requests), duration(stats.span), amount(stats.cv),
                    amount(stats.dispersion_10s), grouped(stats.isl.p50) + " tok",
                    grouped(stats.osl.p50) + " tok", stats.reuse ? percent(*stats.reuse) : "-"});
  };
  add("as recorded", info.stats);
  add("as replayed", info.scaled);
  page.table(rows);
  if (!info.skipped.empty()) page.item("left out", joined(info.skipped));
}

void origin(Page& page, const RunResult& result) {
  std::string text;
  for (int i = 0; i < origins; ++i) {
    const double part = result.time_by_origin[static_cast<std::size_t>(i)];
    if (part > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", percent(part),
                          racktwin::name(static_cast<Origin>(i)));
  }
  if (!text.empty())
    page.item("origin",
              fmt::format("of the busy GPU time, by where its figures come from: {}", text));
  page.item("run", fmt::format("{} simulated, {} events, {} steps", duration(result.simulated),
                               grouped(static_cast<std::int64_t>(result.events)),
                               grouped(static_cast<std::int64_t>(result.steps))));
}

}  // namespace

std::string summary_text(const RunResult& result, const TextStyle& style) {
  Page page(style);
  title(page, result);
  headline(page, result);
  requests(page, result);
  latencies(page, result.metrics);
  pools(page, result);
  transfers(page, result.transfers);
  if (result.trace) trace(page, *result.trace);
  page.line("");
  origin(page, result);
  return page.take();
}

}  // namespace racktwin::report
