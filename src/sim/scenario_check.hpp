// What must hold between the fields of a scenario, beyond the range of each: every rule points
// at the key that breaks it. Rules that need the catalogue (does the model fit, does `ep` divide
// its experts) are sim::run's.
#pragma once

#include <string>
#include <vector>

#include "base/yaml.hpp"
#include "sim/scenario.hpp"

namespace racktwin::sim::detail {

void check(yaml::Section& at, const serve::Speculation&);
void check(yaml::Section& at, const serve::KvTiers&);
void check(yaml::Section& at, const serve::Pool&);
void check(yaml::Section& at, const serve::RouterSpec&);
void check(yaml::Section& at, const workload::Lengths&);
void check(yaml::Section& at, const workload::OpenLoop&);
void check(yaml::Section& at, const workload::ClosedLoop&);
void check(yaml::Section& at, const workload::Load&);
void check(yaml::Section& at, const Slo&);
void check(yaml::Section& at, const Scenario&);

// No run may ask for more: what is kept per GPU, replica and interval then fits in memory.
inline constexpr std::int64_t gpus_most = 10'000'000;
inline constexpr std::int64_t intervals_most = 2'000'000;

}  // namespace racktwin::sim::detail
