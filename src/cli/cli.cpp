#include "cli/cli.hpp"

#include <fmt/format.h>

#include <exception>

#include "cli/command_line.hpp"
#include "cli/overrides.hpp"
#include "cli/verbs.hpp"

namespace racktwin::cli {
namespace {

struct Dispatch {
  const Console& console;
  Result<int> operator()(const RunCommand& command) const { return run_verb(command, console); }
  Result<int> operator()(const ShowCommand& command) const { return show_verb(command, console); }
  Result<int> operator()(const CatalogCommand& command) const {
    return catalog_verb(command, console);
  }
  Result<int> operator()(const TraceCommand& command) const { return trace_verb(command, console); }
  Result<int> operator()(const TextCommand& command) const {
    RACKTWIN_TRY_DONE(print(console, command.text));
    return exit_done;
  }
};

Result<int> dispatch(std::span<const std::string> arguments, const Console& console) {
  RACKTWIN_TRY(const Command command, parse_command_line(arguments));
  return std::visit(Dispatch{console}, command);
}

}  // namespace

Result<Done> print(const Console& console, std::string_view text) {
  if (console.out(text)) return Done{};
  return Error{Error::Code::io, "cannot write the result: disk full, or nobody reads it",
               "standard output"};
}

void note(const Console& console, std::string_view text) {
  console.err(fmt::format("racktwin: {}\n", text));
}

Result<int> show_verb(const ShowCommand& command, const Console& console) {
  RACKTWIN_TRY(const sim::Scenario scenario,
               load_with(command.scenario, {}, command.seed, command.set));
  RACKTWIN_TRY_DONE(print(console, sim::to_yaml(scenario)));
  return exit_done;
}

int run_cli(std::span<const std::string> arguments, const Console& console) {
  try {
    const Result<int> code = dispatch(arguments, console);
    if (code.ok()) return code.value();
    note(console, code.error().text());
    return exit_misused;
  } catch (const std::exception& exception) {  // of the standard library: out of memory
    note(console, fmt::format("gave up: {}", exception.what()));
    return exit_failed;
  }
}

}  // namespace racktwin::cli
