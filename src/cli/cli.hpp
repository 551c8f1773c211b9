// The command line as a function: arguments in, text and an exit code out. main() lends it the
// process; a test lends it strings.
//
// stdout carries the result and nothing else; stderr carries progress, notes and refusals, one
// sentence each. Exit codes: 0 done, 1 could not, 2 misused (bad input of any kind, output that
// cannot be written), 130 interrupted (what is known was written, marked partial).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace racktwin::cli {

inline constexpr int exit_done = 0, exit_failed = 1, exit_misused = 2, exit_interrupted = 130;

// What the process offers. All but `out` and `err` have a meaning when left empty.
struct Console {
  // Return false when the text could not be written (disk full, closed pipe).
  std::function<bool(std::string_view)> out, err;
  std::function<bool()> stop_asked;      // somebody pressed Ctrl-C; empty = never
  std::function<double()> wall_seconds;  // since any fixed moment; empty = time stands still
  bool err_is_terminal = false;          // then progress is shown, on one line
  bool out_in_colour = false;
};

// `arguments` without the program's name.
int run_cli(std::span<const std::string> arguments, const Console&);

}  // namespace racktwin::cli
