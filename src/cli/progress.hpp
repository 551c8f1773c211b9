// How far a run is, on stderr: one line that is written over, after two seconds; or, when
// stderr is a file and progress was asked for, a line now and then.
#pragma once

#include <string>

#include "cli/cli.hpp"
#include "sim/run.hpp"

namespace racktwin::cli {

class ProgressLine {
 public:
  ProgressLine(const Console& console, bool asked);
  // Shows it if it is time to; false when the run is to stop.
  bool tell(const sim::Progress&);
  void clear();  // before anything else is written

 private:
  std::string text(const sim::Progress&, double elapsed) const;

  const Console& console_;
  bool shown_, one_line_;
  double start_, last_ = 0;
  bool dirty_ = false;
};

// "3 s", "4 min 10 s", "2 h 5 min".
std::string spoken(double seconds);

}  // namespace racktwin::cli
