// From a scenario to the parts of a run: names looked up, shapes checked, memory planned,
// step models made, replicas placed. Everything that can be refused is refused here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "catalog/catalog.hpp"
#include "cost/step_model.hpp"
#include "serve/cluster.hpp"
#include "sim/scenario.hpp"

namespace racktwin::sim {

struct PoolParts {
  catalog::Engine engine;  // with the pool's overrides
  cost::MemoryPlan memory;
  std::unique_ptr<cost::StepModel> model;
};

struct Parts {
  catalog::Model model;
  catalog::Gpu gpu;
  catalog::System system;
  int gpus = 0;
  Seconds request_overhead;       // HTTP and tokenisation, before a router sees a request
  std::vector<PoolParts> pools;   // as Scenario::deployment.pools
  serve::Cluster::Setup cluster;  // borrows the step models above
  std::vector<std::string> warnings;
};

Result<Parts> build(const Scenario&, const catalog::Catalog&);

}  // namespace racktwin::sim
