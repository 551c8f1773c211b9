// A scenario is all that a run depends on: resolved, validated, plain values. Equal scenarios
// give equal results, byte for byte. Every default is an initialiser here or in the structs
// it is made of, and nowhere else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "serve/spec.hpp"
#include "workload/generator.hpp"
#include "workload/trace.hpp"

namespace racktwin::sim {

// A trace is replayed to its end: the horizon does not cut it.
struct TraceLoad {
  std::string path;
  workload::TraceOptions options;  // its seed is the scenario's
  friend bool operator==(const TraceLoad&, const TraceLoad&) = default;
};

// Bounds a request must keep to count as good. Absent bounds are not asked for.
struct Slo {
  std::string name = "default";
  std::optional<Seconds> ttft, tpot, e2e;
  double attainment = 0.99;  // part of the requests that must be good for "SLO met"
  friend bool operator==(const Slo&, const Slo&) = default;
};

enum class Execution : std::uint8_t {
  macro,  // k steps at once where nothing changes: same token times, less work
  plain,  // one event per step: the oracle of the macro-step law
};

struct Scenario {
  std::string name = "scenario";
  std::string description;
  std::uint64_t seed = 1;
  Seconds horizon = 300 * unit::sec;
  // After the last arrival the run goes on until all requests have ended, at most so long.
  Seconds drain = 3600 * unit::sec;
  Seconds warmup;  // requests that arrive before it are served but not in the percentiles
  std::string model = "deepseek-r1-nvfp4";
  std::string system = "gb300-nvl72";
  int racks = 1;
  std::string calibration = "datasheet";
  serve::Deployment deployment;
  std::variant<workload::Load, TraceLoad> load;
  std::string mix;               // name of the client mix that `load` came from, if any
  std::vector<Slo> slos{Slo{}};  // index = the request's slo_class
  Seconds series_interval = unit::sec;
  bool records = false;  // keep every request (requests.csv.zst, exact percentiles)
  Execution execution = Execution::macro;
  friend bool operator==(const Scenario&, const Scenario&) = default;
};

// Reads a scenario file (or embedded scenario by name, e.g. "default"), then applies the
// overrides ("pools.0.replicas=4"). Strict: file:line:column on refusal.
Result<Scenario> load_scenario(const std::string& path_or_name,
                               const std::vector<std::string>& overrides);
Result<Scenario> parse_scenario(std::string_view text, std::string name,
                                const std::vector<std::string>& overrides);
std::vector<std::string> scenario_names();  // the embedded ones

// The resolved whole as YAML: parse_scenario(to_yaml(s)) == s, and to_yaml of that is the
// same bytes.
std::string to_yaml(const Scenario&);

}  // namespace racktwin::sim
