// What requests met with: counts, latencies, rates and objectives of one run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.hpp"
#include "base/units.hpp"

namespace racktwin::sim {

// Of durations, kept in nanoseconds; or of token counts.
struct Distribution {
  Histogram histogram;
  // Exact values from records where they were kept, the histogram's (0.4 %) otherwise.
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;  // in the histogram's unit
  std::optional<double> deviation;  // standard deviation of all values; absent: not kept
};

struct SloOutcome {
  std::string name;
  std::optional<Seconds> ttft, tpot, e2e;
  double attainment = 0.99;             // asked for
  std::int64_t requests = 0, good = 0;  // ended ones of this class
  std::int64_t missed_ttft = 0, missed_tpot = 0, missed_e2e = 0, not_served = 0;
  double reached() const { return requests ? double(good) / double(requests) : 0; }
  bool met() const { return requests > 0 && reached() >= attainment; }
};

struct Counts {  // arrived == completed + shed + unfinished
  std::int64_t arrived = 0, completed = 0, shed = 0, unfinished = 0;
  std::map<std::string, std::int64_t> shed_reasons;
};

struct Metrics {
  Counts counts;
  std::int64_t input_tokens = 0, output_tokens = 0;  // of completed requests
  Seconds duration;  // first arrival to last completion: what rates are over
  Distribution ttft, tpot, itl, chunk_latency, e2e, queue_time;
  Distribution isl, osl;  // of completed requests, tokens
  PerSecond request_throughput, goodput;
  TokensPerSecond output_throughput, input_throughput, total_throughput, goodput_tokens;
  TokensPerSecond output_per_gpu, total_per_gpu;
  // What the cluster delivers while load is on it: from the end of the warm-up to the last
  // arrival (bursts and closed loops: to the last completion). The rates above are over the
  // whole duration, as benchmark clients count, and hold the filling and the emptying too.
  struct Steady {
    Seconds from, to;  // since the start of the run
    TokensPerSecond output, output_per_gpu;
    PerSecond completed, goodput;  // ended in the window; and good
  } steady;
  double concurrency_mean = 0;
  std::int64_t concurrency_peak = 0;
  std::vector<SloOutcome> slos;
};

}  // namespace racktwin::sim
