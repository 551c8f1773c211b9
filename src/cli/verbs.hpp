// One function per verb: a command and the console in, an exit code or a refusal out.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/cli.hpp"
#include "cli/command_line.hpp"

namespace racktwin::cli {

Result<int> run_verb(const RunCommand&, const Console&);
Result<int> show_verb(const ShowCommand&, const Console&);
Result<int> catalog_verb(const CatalogCommand&, const Console&);
Result<int> trace_verb(const TraceCommand&, const Console&);

// A script for the shell, "bash" or "zsh", that completes verbs, flags and names.
Result<std::string> completion_script(const std::string& shell);

// Writes the result to stdout; refused when that fails.
Result<Done> print(const Console&, std::string_view text);
// A note on stderr: one line.
void note(const Console&, std::string_view text);

}  // namespace racktwin::cli
