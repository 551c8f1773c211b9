#include "cli/overrides.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace racktwin::cli {
namespace {

Error refused(std::string message, std::string where) {
  return {Error::Code::invalid_input, std::move(message), std::move(where)};
}

Result<std::int64_t> count(const std::string& text, const char* flag) {
  const auto value = parse_integer(text);
  if (value && *value >= 1 && *value <= 1'000'000'000'000) return *value;
  return refused(fmt::format("needs a whole number from 1 on, found \"{}\"", text), flag);
}

Result<double> factor(const std::string& text, const char* flag, double most) {
  const auto value = parse_number(text);
  if (value && *value > 0 && *value <= most) return *value;
  return refused(fmt::format("needs a number above 0{}, found \"{}\"",
                             most <= 1 ? fmt::format(" and at most {}", most) : "", text),
                 flag);
}

}  // namespace

bool sets(const std::vector<std::string>& assignments, std::string_view key) {
  return std::any_of(assignments.begin(), assignments.end(), [&](const std::string& assignment) {
    return assignment.substr(0, assignment.find('=')) == key;
  });
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

std::string grouped(std::int64_t count) {
  std::string digits = std::to_string(count);
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > (count < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

Result<sim::Scenario> load_with(const std::string& scenario, std::vector<std::string> first,
                                const std::optional<std::string>& seed,
                                const std::vector<std::string>& set) {
  if (seed) first.push_back("seed=" + *seed);
  first.insert(first.end(), set.begin(), set.end());
  auto loaded = sim::load_scenario(scenario, first);
  if (loaded.ok()) return loaded;
  Error error = std::move(loaded).error();
  if (error.where == "--set seed" && seed && !sets(set, "seed")) error.where = "--seed";
  return error;
}

Result<workload::TraceOptions> trace_options(const TraceFlags& flags,
                                             const std::optional<std::string>& seed) {
  workload::TraceOptions options;
  if (flags.copies) {
    RACKTWIN_TRY(const std::int64_t copies, count(*flags.copies, "--copies"));
    if (copies > 1'000'000) return refused("at most 1,000,000 copies are made", "--copies");
    options.scaling.copies = static_cast<int>(copies);
  }
  if (flags.compress) {
    RACKTWIN_TRY(options.scaling.compress, factor(*flags.compress, "--compress", 1e9));
  }
  if (flags.keep) {
    RACKTWIN_TRY(options.scaling.keep, factor(*flags.keep, "--keep", 1));
  }
  if (flags.limit) {
    RACKTWIN_TRY(options.limit, count(*flags.limit, "--limit"));
  }
  if (flags.max_context) {
    RACKTWIN_TRY(options.max_context, count(*flags.max_context, "--max-context"));
  }
  if (seed) {
    const auto value = parse_integer(*seed);
    if (!value || *value < 0)
      return refused(fmt::format("needs a whole number from 0 on, found \"{}\"", *seed), "--seed");
    options.seed = static_cast<std::uint64_t>(*value);
  }
  return options;
}

std::string trace_override(const std::string& path, const TraceFlags& flags) {
  std::string load = fmt::format("load={{kind: trace, path: {}", quoted(path));
  if (flags.limit) load += ", limit: " + *flags.limit;
  if (flags.max_context) load += ", max_context: " + *flags.max_context;
  return load + fmt::format(", scaling: {{copies: {}, compress: {}, keep: {}}}}}",
                            flags.copies.value_or("1"), flags.compress.value_or("1"),
                            flags.keep.value_or("1"));
}

std::string trace_line(const workload::TraceInfo& info) {
  const double span = info.stats.span.in(unit::sec);
  std::string line = fmt::format("{} (times in {}): {} requests", info.format, info.time_unit,
                                 grouped(info.stats.requests));
  if (info.stats.sessions > 0) line += fmt::format(" in {} sessions", grouped(info.stats.sessions));
  line += span >= 120 ? fmt::format(" over {:.1f} min", span / 60)
                      : fmt::format(" over {:.1f} s", span);
  std::int64_t skipped = 0;
  std::string reasons;
  for (const auto& [reason, rows] : info.skipped) {
    skipped += rows;
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", grouped(rows), reason);
  }
  if (skipped > 0) line += fmt::format("; skipped {}: {}", grouped(skipped), reasons);
  return line;
}

}  // namespace racktwin::cli
