// Generated load: what to draw, as plain data, and the sources that draw it. Each consumer
// has its own random stream of the run's seed, so that changing lengths leaves arrivals
// alone (common random numbers).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/rng.hpp"
#include "base/units.hpp"
#include "workload/source.hpp"

namespace racktwin::workload {

// A distribution of token counts (or, for think times, milliseconds).
struct Lengths {
  enum class Kind : std::uint8_t { fixed, uniform, log_normal, exponential, empirical };
  Kind kind = Kind::fixed;
  double mean = 512;  // fixed: the value; log_normal, exponential: the mean before clipping
  double cv = 1;      // log_normal: deviation over mean
  std::int64_t min = 1, max = 1 << 20;  // uniform: the ends, inclusive; others: clipped to them
  // empirical: (value, weight); drawn by weight, uniform between a value and the next
  // when `smooth`, the value itself otherwise.
  std::vector<std::pair<std::int64_t, double>> table;
  bool smooth = false;
};
std::int64_t draw(const Lengths&, Rng&);
double mean_of(const Lengths&);  // after clipping where it has a closed form

struct Diurnal {     // rate(t) = rate * (1 + swing * cos(2 pi (t - peak) / period))
  double swing = 0;  // 0..1
  Seconds period = unit::day, peak = 14 * unit::hour;
};

struct Arrivals {
  enum class Kind : std::uint8_t { poisson, gamma, weibull };
  Kind kind = Kind::poisson;
  PerSecond rate = unit::per_second;
  double cv = 1;  // of the gaps, gamma and weibull: > 1 bursty
  Diurnal diurnal;
};

struct Client {
  std::string name;
  double share = 1;  // of the total rate; the shares are normalised
  Arrivals::Kind kind = Arrivals::Kind::poisson;
  double cv = 1;
  Lengths isl, osl;
  std::uint8_t slo_class = 0;
};

// Independent clients, superposed: few heavy bursty ones and a tail, as real fleets show
// (ServeGen, arXiv 2505.09999). One client is the plain open loop.
struct OpenLoop {
  PerSecond rate = unit::per_second;
  Diurnal diurnal;
  std::vector<Client> clients;
};

struct ClosedLoop {  // `concurrency` requests in flight at any time
  std::int64_t concurrency = 1;
  std::int64_t requests = 0;  // in all; 0 = until the horizon
  Lengths isl, osl;
};

struct Burst {  // all at t = 0 ("offline")
  std::int64_t requests = 1;
  Lengths isl, osl;
};

// Conversations and agents: turn n+1 comes a think time after turn n ended, and its prompt
// is turn n's prompt and answer with new tokens added, so that the prefix is reusable.
struct Sessions {
  Arrivals starts;               // of sessions
  std::int64_t concurrency = 0;  // > 0: that many sessions at any time instead of `starts`
  Lengths turns{.mean = 4};
  Lengths first_prompt, new_tokens, osl;
  Lengths think_ms{.mean = 10000};
  std::int64_t system_prompt = 0;  // tokens that all sessions share
  double sub_agents = 0;           // chance per turn that sub-agents run before the next turn
  Lengths sub_agent_calls{.mean = 3};
  std::int64_t max_context = 1 << 20;  // a session ends before it would pass this
  int block_tokens = 64;
};

using Load = std::variant<OpenLoop, ClosedLoop, Burst, Sessions>;

// Requests arrive in [0, horizon). Memory: O(clients + requests in flight).
std::unique_ptr<Source> generate(const Load&, Seconds horizon, std::uint64_t seed);

// A named client mix of data/workloads/, e.g. "deepseek-r1-reasoning".
Result<OpenLoop> load_mix(std::string_view name);
std::vector<std::string> mix_names();

}  // namespace racktwin::workload
