#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "catalog/catalog.hpp"
#include "cli/overrides.hpp"
#include "cli/progress.hpp"
#include "cli/verbs.hpp"
#include "report/report.hpp"
#include "sim/run.hpp"

namespace racktwin::cli {
namespace {

// A folder that cannot take the report is refused before the run, not after it.
Result<Done> check_writable(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code code;
  fs::path place = fs::absolute(directory, code);
  while (!place.empty() && !fs::exists(place, code) && place.has_relative_path())
    place = place.parent_path();
  if (!fs::is_directory(place, code))
    return Error{Error::Code::io, fmt::format("\"{}\" is no folder", place.string()), "--out"};
  return Done{};
}

Result<sim::Scenario> scenario_of(const RunCommand& command) {
  std::vector<std::string> overrides;
  const TraceFlags& flags = command.trace_flags;
  if (command.trace) {
    RACKTWIN_TRY_DONE(trace_options(flags, std::nullopt));
    if (sets(command.set, "horizon"))
      return Error{Error::Code::invalid_input,
                   "a trace is replayed to its end, whatever the horizon; --limit N shortens it",
                   "--set horizon"};
    overrides.push_back(trace_override(*command.trace, flags));
  } else if (flags.copies || flags.compress || flags.keep || flags.limit || flags.max_context) {
    return Error{
        Error::Code::invalid_input,
        "--copies, --compress, --keep, --limit and --max-context fit a trace: give --trace "
        "FILE, or set load.scaling of a scenario that has one",
        "run"};
  }
  if (command.records) overrides.push_back("records=true");
  return load_with(command.scenario, std::move(overrides), command.seed, command.set);
}

}  // namespace

Result<int> run_verb(const RunCommand& command, const Console& console) {
  if (command.out) RACKTWIN_TRY_DONE(check_writable(*command.out));
  RACKTWIN_TRY(const sim::Scenario scenario, scenario_of(command));
  RACKTWIN_TRY(const catalog::Catalog catalog, catalog::Catalog::built_in());

  ProgressLine progress(console, command.progress);
  sim::RunOptions options;
  options.progress = [&](const sim::Progress& told) { return progress.tell(told); };
  const auto result = sim::run(scenario, catalog, options);
  progress.clear();
  if (!result.ok()) return result.error();

  if (command.json && result.value().trace)
    note(console, "trace " + trace_line(*result.value().trace));

  std::vector<std::string> written;
  if (command.out) {
    RACKTWIN_TRY(written, report::write_reports(result.value(), *command.out));
  }
  RACKTWIN_TRY_DONE(print(
      console, command.json
                   ? report::summary_json(result.value())
                   : report::summary_text(result.value(), {.colour = console.out_in_colour
                                                                         ? report::Colour::ansi
                                                                         : report::Colour::none})));
  for (const std::string& path : written) note(console, "wrote " + path);
  if (!result.value().partial) return exit_done;
  note(console, "stopped early (" + result.value().partial_reason + "): the result is partial");
  return console.stop_asked && console.stop_asked() ? exit_interrupted : exit_failed;
}

}  // namespace racktwin::cli
