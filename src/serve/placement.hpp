// Which GPUs a replica stands on.
#pragma once

#include <vector>

#include "base/id.hpp"
#include "base/result.hpp"
#include "serve/spec.hpp"

namespace racktwin::serve {

// First GPU of every replica, pool after pool in the order of the deployment. A replica takes
// consecutive ids; one that fits a domain never crosses its border, a larger one starts at it.
// Refused: more GPUs than there are, or no domain with room left for a replica (with the sums).
Result<std::vector<GpuId>> place(const Deployment&, int gpus, int domain);

}  // namespace racktwin::serve
