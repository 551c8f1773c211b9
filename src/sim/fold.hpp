// From the parts of a finished run to its result.
#pragma once

#include "sim/build.hpp"
#include "sim/collector.hpp"
#include "sim/result.hpp"

namespace racktwin::sim {

// Pools, racks, transfers, time lines and origins; `simulated` is what shares of time are of.
void fold_cluster(const Scenario&, const Parts&, const serve::Cluster&, const Collector&,
                  Seconds simulated, RunResult&);

// What limits the run, in one sentence, from the folded result.
Bottleneck find_bottleneck(const RunResult&);

}  // namespace racktwin::sim
