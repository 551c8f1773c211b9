// Recorded traces: detected by content, read as they are, with their units and traps.
//
// A row that cannot be used is counted under its reason, never dropped in silence; a row
// that is malformed refuses the file with file:line. Formats, units and traps:
// docs/models/traces.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/histogram.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "workload/source.hpp"

namespace racktwin::workload {

// How a trace is fitted to a cluster of another size. What it did to burstiness and reuse
// is measured before and after (TraceStats).
struct Scaling {
  // Independent copies, each shifted by a random phase (wrapped around the span) and with
  // re-salted block ids and sessions. Superposition: CV falls towards 1.
  int copies = 1;
  // Time is divided by this: the CV stays, gaps and reuse times shrink. > 0.
  double compress = 1;
  // Random thinning: each request (session, where there are sessions) is kept with this chance.
  double keep = 1;
  friend bool operator==(const Scaling&, const Scaling&) = default;
};

struct TraceOptions {
  Scaling scaling;
  std::optional<std::int64_t> limit;        // the first so many requests
  std::optional<std::int64_t> max_context;  // requests longer than this are counted and left out
  bool closed_loop_sessions = true;  // sessions wait for their own answers; false: as stamped
  // So many sessions at any time, in the order of the trace, the next as one ends: for traces
  // that do not say when sessions began (absent: those begin at 0, all at once).
  std::optional<std::int64_t> concurrency;
  std::string format;    // of trace_formats(); empty = as detected
  int block_tokens = 0;  // tokens per hash id where the file does not say; 0 = the format's
  // A plain trace of more rows is not held (16 bytes a row) but read twice, in bounded memory.
  // It must be sorted by time.
  std::int64_t held_rows = std::int64_t{1} << 22;
  std::uint64_t seed = 1;
  friend bool operator==(const TraceOptions&, const TraceOptions&) = default;
};

struct TraceStats {
  struct Length {
    double mean = 0;
    std::int64_t p50 = 0, p95 = 0, p99 = 0, max = 0;
  };
  std::int64_t requests = 0, sessions = 0;
  Seconds span;                                                      // first arrival to last
  double cv = 0;                                                     // of inter-arrival gaps
  double dispersion_1s = 0, dispersion_10s = 0, dispersion_60s = 0;  // var/mean of window counts
  Length isl, osl;
  // Part of the blocks found in an unlimited cache of all earlier requests; absent where the
  // trace carries no block identity.
  std::optional<double> reuse;
};

struct TraceInfo {
  std::string format;     // "mooncake", "azure-2023", ...
  std::string time_unit;  // "ms", "s", "timestamp (100 ns)", "none"
  int block_tokens = 0;   // 0 = no block identity
  bool closed_loop = false;
  TraceStats stats, scaled;                     // as recorded; after Scaling
  std::map<std::string, std::int64_t> skipped;  // reason -> rows
};

struct Trace {
  TraceInfo info;
  std::unique_ptr<Source> source;
};

// Refused: missing file, no known format (with what was found), malformed row (line and
// value), an empty trace. Mooncake-family, agentic and session files are held in memory;
// plain rows with non-decreasing arrivals are streamed, so that a file larger than memory works.
Result<Trace> open_trace(const std::string& path, const TraceOptions&);
// The same from memory, which outlives the source. `name` stands in messages.
Result<Trace> open_trace_text(std::string_view content, const std::string& name,
                              const TraceOptions&);
Result<TraceInfo> inspect_trace(const std::string& path, const TraceOptions&);

std::vector<std::string> trace_formats();

}  // namespace racktwin::workload
