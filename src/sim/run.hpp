// The digital twin: builds the parts, runs the clock, folds what happened.
#pragma once

#include <functional>

#include "catalog/catalog.hpp"
#include "sim/result.hpp"
#include "sim/scenario.hpp"

namespace racktwin::sim {

struct Progress {
  double done = 0;  // part of the horizon, 0..1
  std::int64_t arrived = 0, completed = 0;
  Seconds simulated;
};
struct RunOptions {
  // Called a few times per wall second at most. Returns false to stop: the result is then
  // what is known, marked partial.
  std::function<bool(const Progress&)> progress;
};

// Fails only on bad input: a name not in the catalogue, a shape that cannot be or does not fit
// (with the memory breakdown), a trace that cannot be read.
Result<RunResult> run(const Scenario&, const catalog::Catalog&, const RunOptions& = {});

}  // namespace racktwin::sim
