// Flags that are short for a --set of the scenario, and the scenario they lead to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/command_line.hpp"
#include "sim/scenario.hpp"
#include "workload/trace.hpp"

namespace racktwin::cli {

// The scenario with `--seed` and `--set` applied, in the order: `first`, seed, set.
Result<sim::Scenario> load_with(const std::string& scenario, std::vector<std::string> first,
                                const std::optional<std::string>& seed,
                                const std::vector<std::string>& set);

// The trace flags as values; each is refused by its own name.
Result<workload::TraceOptions> trace_options(const TraceFlags&,
                                             const std::optional<std::string>& seed);

// The assignment that makes the trace at `path` the load of a scenario.
std::string trace_override(const std::string& path, const TraceFlags&);

// Whether one of the assignments ("racks=4") is of `key`.
bool sets(const std::vector<std::string>& assignments, std::string_view key);

// "mooncake (times in ms): 12,031 requests over 58.9 min; skipped 3: ...".
std::string trace_line(const workload::TraceInfo&);

// Text as a YAML scalar in double quotes.
std::string quoted(std::string_view text);
// 12031 -> "12,031".
std::string grouped(std::int64_t count);

}  // namespace racktwin::cli
