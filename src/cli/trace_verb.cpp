#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "cli/overrides.hpp"
#include "cli/verbs.hpp"

namespace racktwin::cli {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const workload::TraceStats::Length& length) {
  return {{"mean", length.mean},
          {"p50", length.p50},
          {"p95", length.p95},
          {"p99", length.p99},
          {"max", length.max}};
}

Json json_of(const workload::TraceStats& stats) {
  return {{"requests", stats.requests},
          {"sessions", stats.sessions},
          {"span_s", static_cast<double>(std::llround(stats.span.in(unit::us))) / 1e6},
          {"cv", stats.cv},
          {"dispersion_1s", stats.dispersion_1s},
          {"dispersion_10s", stats.dispersion_10s},
          {"dispersion_60s", stats.dispersion_60s},
          {"isl", json_of(stats.isl)},
          {"osl", json_of(stats.osl)},
          {"reuse", stats.reuse ? Json(*stats.reuse) : Json(nullptr)}};
}

std::string json_text(const workload::TraceInfo& info, bool scaled) {
  Json json = {{"format", info.format}, {"time_unit", info.time_unit}};
  json.update(json_of(info.stats));
  json["block_tokens"] = info.block_tokens > 0 ? Json(info.block_tokens) : Json(nullptr);
  json["closed_loop"] = info.closed_loop;
  json["skipped"] = Json(info.skipped);
  if (scaled) json["scaled"] = json_of(info.scaled);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string column(const workload::TraceStats& stats, std::string_view key) {
  const auto lengths = [](const workload::TraceStats::Length& l) {
    return fmt::format("{:.0f} / {} / {} / {}", l.mean, grouped(l.p50), grouped(l.p99),
                       grouped(l.max));
  };
  const double span = stats.span.in(unit::sec);
  if (key == "requests") return grouped(stats.requests);
  if (key == "sessions") return stats.sessions > 0 ? grouped(stats.sessions) : "-";
  if (key == "span") return fmt::format("{:.1f} s", span);
  if (key == "rate")
    return span > 0 ? fmt::format("{:.2f} /s", double(stats.requests) / span) : "-";
  if (key == "CV of gaps") return fmt::format("{:.2f}", stats.cv);
  if (key == "dispersion 1/10/60 s")
    return fmt::format("{:.1f} / {:.1f} / {:.1f}", stats.dispersion_1s, stats.dispersion_10s,
                       stats.dispersion_60s);
  if (key == "ISL mean/p50/p99/max") return lengths(stats.isl);
  if (key == "OSL mean/p50/p99/max") return lengths(stats.osl);
  return stats.reuse ? fmt::format("{:.1f} %", 100 * *stats.reuse) : "- (no block identity)";
}

std::string info_text(const workload::TraceInfo& info, bool scaled) {
  std::string text = fmt::format("{:<22} {}, times in {}\n", "format", info.format, info.time_unit);
  if (info.block_tokens > 0) text += fmt::format("{:<22} {} tokens\n", "block", info.block_tokens);
  if (info.closed_loop)
    text += fmt::format("{:<22} sessions wait for their answers\n", "closed loop");
  if (scaled) text += fmt::format("{:<22} {:<32} {}\n", "", "as recorded", "scaled");
  for (const std::string_view key :
       {"requests", "sessions", "span", "rate", "CV of gaps", "dispersion 1/10/60 s",
        "ISL mean/p50/p99/max", "OSL mean/p50/p99/max", "prefix reuse"}) {
    text += scaled ? fmt::format("{:<22} {:<32} {}\n", key, column(info.stats, key),
                                 column(info.scaled, key))
                   : fmt::format("{:<22} {}\n", key, column(info.stats, key));
  }
  for (const auto& [reason, rows] : info.skipped)
    text += fmt::format("{:<22} {} {}\n", "skipped", grouped(rows), reason);
  return text;
}

// As Mooncake's JSONL: times in ms, block ids renumbered in order of first use.
std::string mooncake(workload::Source& source, int block_tokens) {
  std::map<std::uint64_t, std::uint64_t> numbers;
  std::string text;
  while (source.peek()) {
    const workload::Request request = source.next();
    text += fmt::format("{{\"timestamp\": {}, \"input_length\": {}, \"output_length\": {}",
                        static_cast<double>(request.arrival.ns()) / 1e6, request.isl, request.osl);
    if (block_tokens > 0) {
      std::vector<std::uint64_t> ids;
      for (const std::uint64_t block : request.blocks)
        ids.push_back(numbers.try_emplace(block, numbers.size()).first->second);
      text += fmt::format(", \"hash_ids\": [{}]", fmt::join(ids, ", "));
    }
    if (request.session) text += fmt::format(", \"session_id\": \"{}\"", request.session->index);
    text += "}\n";
    source.completed(request.id, request.arrival);
  }
  return text;
}

Result<int> convert(const TraceCommand& command, workload::TraceOptions options,
                    const Console& console) {
  options.closed_loop_sessions = false;  // a file of time stamps: each request at its own
  RACKTWIN_TRY(const workload::Trace trace, workload::open_trace(command.file, options));
  note(console, fmt::format("{}: {}", command.file, trace_line(trace.info)));
  if (trace.info.block_tokens > 0 && trace.info.block_tokens != 512)
    note(console, fmt::format("hash_ids stand for {} tokens each, not for Mooncake's 512",
                              trace.info.block_tokens));
  const std::string text = mooncake(*trace.source, trace.info.block_tokens);
  if (command.out) {
    RACKTWIN_TRY_DONE(write_file(*command.out, text));
  } else {
    RACKTWIN_TRY_DONE(print(console, text));
  }
  return exit_done;
}

}  // namespace

Result<int> trace_verb(const TraceCommand& command, const Console& console) {
  RACKTWIN_TRY(const workload::TraceOptions options, trace_options(command.flags, command.seed));
  if (command.action == TraceCommand::Action::convert) return convert(command, options, console);
  if (command.out)
    return Error{Error::Code::invalid_input, "belongs to trace convert; info prints", "--out"};
  RACKTWIN_TRY(const workload::TraceInfo info, workload::inspect_trace(command.file, options));
  const workload::Scaling& scaling = options.scaling;
  const bool scaled = scaling.copies != 1 || scaling.compress != 1 || scaling.keep != 1;
  RACKTWIN_TRY_DONE(
      print(console, command.json ? json_text(info, scaled) : info_text(info, scaled)));
  return exit_done;
}

}  // namespace racktwin::cli
