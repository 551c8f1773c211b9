// What the user asked for, as plain values. Numbers stay text here: the verb that uses one reads
// it, and names the flag where it is wrong.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace racktwin::cli {

// How a trace is read and fitted to the cluster; each is absent unless given.
struct TraceFlags {
  std::optional<std::string> copies, compress, keep, limit, max_context;
};

struct RunCommand {
  std::string scenario = "default";
  std::optional<std::string> trace, seed, out;
  std::vector<std::string> set;
  TraceFlags trace_flags;
  bool json = false, records = false, progress = false;
};
struct ShowCommand {
  std::string scenario = "default";
  std::optional<std::string> seed;
  std::vector<std::string> set;
};
struct CatalogCommand {
  std::string kind = "list";
  std::optional<std::string> name;
  bool json = false;
};
struct TraceCommand {
  enum class Action : std::uint8_t { info, convert } action = Action::info;
  std::string file;
  std::optional<std::string> out, seed;
  TraceFlags flags;
  bool json = false;
};
struct TextCommand {  // help, version, completion
  std::string text;
};
using Command = std::variant<RunCommand, ShowCommand, CatalogCommand, TraceCommand, TextCommand>;

// Refused: an unknown verb or flag (with the nearest name), a missing or surplus value, a flag
// given twice.
Result<Command> parse_command_line(std::span<const std::string> arguments);

// The verbs with their flags, as completion needs them.
struct VerbRow {
  struct Flag {
    std::string name, help;  // "--seed"
    bool takes_value = false;
  };
  std::string name, help;
  std::vector<Flag> flags;
  std::vector<std::string> words;  // of the first argument: "info", "convert"
};
std::vector<VerbRow> verb_table();

}  // namespace racktwin::cli
