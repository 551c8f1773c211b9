// What a run keeps of single requests and steps: the rows of requests.csv, which the latency
// figures are made of, and the slices of the Perfetto view.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace racktwin::sim {

struct Record {
  std::uint32_t id = 0;
  std::int64_t isl = 0, osl = 0, reused_tokens = 0;
  std::int64_t arrival_ns = 0, scheduled_ns = -1, prefilled_ns = -1, first_token_ns = -1,
               last_token_ns = -1;  // -1 in the file's empty cell: never happened
  std::int32_t prefill_replica = -1, decode_replica = -1;
  std::int32_t preemptions = 0;
  std::uint8_t end = 0;  // 0 completed, 1 shed, 2 unfinished
  std::uint8_t slo_class = 0;
  bool good = false;

  // Absent where the end points never happened; tpot also where osl == 1.
  std::optional<Seconds> ttft() const {
    if (first_token_ns < 0) return std::nullopt;
    return double(first_token_ns - arrival_ns) * unit::ns;
  }
  std::optional<Seconds> e2e() const {
    if (end != 0 || last_token_ns < 0) return std::nullopt;
    return double(last_token_ns - arrival_ns) * unit::ns;
  }
  std::optional<Seconds> tpot() const {
    if (end != 0 || osl < 2 || first_token_ns < 0) return std::nullopt;
    return double(last_token_ns - first_token_ns) / double(osl - 1) * unit::ns;
  }
};

// A slice for the Perfetto view: the first minutes of a few replicas and requests. `track`
// is "GROUP/TRACK", e.g. "decode/replica 3", "requests/17"; slices of a track may nest but
// not cross.
struct Slice {
  std::string track, name;
  std::int64_t start_ns = 0, duration_ns = 0;
  std::vector<std::pair<std::string, double>> arguments;
};

}  // namespace racktwin::sim
