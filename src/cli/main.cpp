// The process around run_cli(): its streams, its clock, its signals.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/cli.hpp"

namespace {

volatile sig_atomic_t stop = 0;

// The first Ctrl-C asks the run to stop and to tell what it knows; the second one kills.
extern "C" void ask_to_stop(int signal) {
  stop = 1;
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;
  sigaction(signal, &plain, nullptr);
}

bool write_to(std::FILE* stream, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stream) == text.size() &&
         std::fflush(stream) == 0;
}

}  // namespace

int main(int count, char** arguments) {
  struct sigaction gentle = {};
  gentle.sa_handler = ask_to_stop;
  sigaction(SIGINT, &gentle, nullptr);
  sigaction(SIGTERM, &gentle, nullptr);

  const std::vector<std::string> words(arguments + (count > 0), arguments + count);
  racktwin::cli::Console console;
  console.out = [](std::string_view text) { return write_to(stdout, text); };
  console.err = [](std::string_view text) { return write_to(stderr, text); };
  console.stop_asked = [] { return stop != 0; };
  console.wall_seconds = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  console.err_is_terminal = isatty(STDERR_FILENO) != 0;
  const char* const no_colour = std::getenv("NO_COLOR");  // https://no-color.org
  console.out_in_colour = isatty(STDOUT_FILENO) != 0 && (!no_colour || !*no_colour);
  return racktwin::cli::run_cli(words, console);
}
