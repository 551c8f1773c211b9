// Complete results that no run produced, for the tests of the reports: every field filled, with
// figures that obey the laws a real result obeys (parts add up, percentiles ascend).
#pragma once

#include "sim/result.hpp"

namespace racktwin::report {

sim::RunResult made_up_result();
sim::RunResult made_up_empty_result();  // nothing completed

}  // namespace racktwin::report
