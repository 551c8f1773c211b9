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
  friend bool operator==(const Lengths&, const Lengths&) = default;
};
std::int64_t draw(const Lengths&, Rng&);  // O(table); the sources use an O(1) form, same values
double mean_of(const Lengths&);           // after clipping; fixed, uniform, empirical: exact
std::int64_t limit_of(const Lengths&);    // the largest that can be drawn
// Refused: min < 0, max < min, a mean or cv that is not finite and >= 0, an empty or unsorted
// table, a weight that is not finite and >= 0, no weight at all.
Result<Done> check(const Lengths&, std::string_view name);

struct Diurnal {     // rate(t) = rate * (1 + swing * cos(2 pi (t - peak) / period))
  double swing = 0;  // 0..1
  Seconds period = unit::day, peak = 14 * unit::hour;
  friend bool operator==(const Diurnal&, const Diurnal&) = default;
};

struct Arrivals {
  enum class Kind : std::uint8_t { poisson, gamma, weibull };
  Kind kind = Kind::poisson;
  PerSecond rate = unit::per_second;
  double cv = 1;  // of the gaps, gamma and weibull: > 1 bursty
  Diurnal diurnal;
  friend bool operator==(const Arrivals&, const Arrivals&) = default;
};

struct Client {
  std::string name;
  double share = 1;  // of the total rate; the shares are normalised
  Arrivals::Kind kind = Arrivals::Kind::poisson;
  double cv = 1;
  Lengths isl, osl;
  std::uint8_t slo_class = 0;
  // The client's own day: parts of equal length that repeat. Rates are relative to one
  // another, so that `share` stays the share over a whole round. Empty = steady.
  struct Window {
    double rate = 1;
    Arrivals::Kind kind = Arrivals::Kind::poisson;
    double cv = 1;
    friend bool operator==(const Window&, const Window&) = default;
  };
  std::vector<Window> windows;
  Seconds window = 10 * unit::minute;
  std::vector<std::pair<Lengths, Lengths>> periods;  // (isl, osl) by part of the day, likewise
  Seconds period = 6 * unit::hour;
  friend bool operator==(const Client&, const Client&) = default;
};

// Gaps are drawn in units of their mean and stretched by the rate of the moment (time warp),
// so that the count has the mean rate * time at every time and bursts keep their CV. The
// first gap is the residual one of a process that has always run. A swing is taken in steps
// of period / 4096 with the exact mean of each step.
//
// Independent clients, superposed: few heavy bursty ones and a tail, as real fleets show
// (ServeGen, arXiv 2505.09999). One client is the plain open loop.
struct OpenLoop {
  PerSecond rate = unit::per_second;
  Diurnal diurnal;
  bool steady = false;  // clients keep their mean rate and lengths: no windows, no periods
  std::vector<Client> clients;
  friend bool operator==(const OpenLoop&, const OpenLoop&) = default;
};

struct ClosedLoop {  // `concurrency` requests in flight at any time
  std::int64_t concurrency = 1;
  std::int64_t requests = 0;  // in all; 0 = until the horizon
  Lengths isl, osl;
  friend bool operator==(const ClosedLoop&, const ClosedLoop&) = default;
};

struct Burst {  // all at t = 0 ("offline")
  std::int64_t requests = 1;
  Lengths isl, osl;
  friend bool operator==(const Burst&, const Burst&) = default;
};

// Conversations and agents: turn n+1 comes a think time after turn n ended, and its prompt
// is turn n's prompt and answer with new tokens added, so that the prefix is reusable.
struct Sessions {
  Arrivals starts;               // of sessions
  std::int64_t concurrency = 0;  // > 0: that many sessions at any time instead of `starts`
  Lengths turns{.mean = 4};
  Lengths first_prompt, new_tokens, osl;
  Lengths think_ms{.mean = 10000};
  std::int64_t system_prompt = 0;      // tokens that all sessions share
  double sub_agents = 0;               // chance per turn that sub-agents run before the next turn
  Lengths parallel_agents{.mean = 1};  // how many at once; each makes its calls one by one,
  Lengths sub_agent_calls{.mean = 3};  // and the next turn waits for all of them
  Lengths agent_think_ms{.mean = 0, .min = 0};  // between a sub-agent's calls
  // A session ends before prompt and answer would pass this; a first turn is cut to fit.
  std::int64_t max_context = 1 << 20;
  int block_tokens = 64;
  friend bool operator==(const Sessions&, const Sessions&) = default;
};

using Load = std::variant<OpenLoop, ClosedLoop, Burst, Sessions>;

// Requests arrive in [0, horizon). Memory: O(clients + requests in flight); O(log clients) and
// no allocation per request of an OpenLoop. Loads that are not sound (see check) abort.
std::unique_ptr<Source> generate(const Load&, Seconds horizon, std::uint64_t seed);
Result<Done> check(const Load&);  // what a scenario reader calls first

// A named client mix of data/workloads/, e.g. "deepseek-r1-reasoning".
Result<OpenLoop> load_mix(std::string_view name);
std::vector<std::string> mix_names();

}  // namespace racktwin::workload
