#include "cli/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/overrides.hpp"

namespace racktwin::cli {
namespace {

constexpr double patience = 2;  // seconds before the first line
constexpr double redraw = 0.2, repeat = 10;

double now(const Console& console) {
  return console.wall_seconds ? console.wall_seconds() : 0;
}

}  // namespace

std::string spoken(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e12) + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

ProgressLine::ProgressLine(const Console& console, bool asked)
    : console_(console),
      shown_(asked || console.err_is_terminal),
      one_line_(console.err_is_terminal),
      start_(now(console)) {}

std::string ProgressLine::text(const sim::Progress& progress, double elapsed) const {
  const double part = std::clamp(progress.done, 0.0, 1.0);
  std::string line = fmt::format("{:3.0f} %  simulated {}  {} arrived, {} completed", 100 * part,
                                 spoken(progress.simulated.in(unit::sec)),
                                 grouped(progress.arrived), grouped(progress.completed));
  if (part >= 1)
    line += "  answering what is left";
  else if (part > 0)
    line += "  ETA " + spoken(elapsed / part * (1 - part));
  return line;
}

bool ProgressLine::tell(const sim::Progress& progress) {
  if (console_.stop_asked && console_.stop_asked()) return false;
  const double elapsed = now(console_) - start_;
  if (!shown_ || elapsed < patience ||
      elapsed - last_ < (one_line_   ? redraw
                         : last_ > 0 ? repeat
                                     : 0))
    return true;
  last_ = elapsed;
  dirty_ = one_line_;
  const std::string line = text(progress, elapsed);
  console_.err(one_line_ ? "\r\033[K" + line : line + "\n");
  return true;
}

void ProgressLine::clear() {
  if (dirty_) console_.err("\r\033[K");
  dirty_ = false;
}

}  // namespace racktwin::cli
