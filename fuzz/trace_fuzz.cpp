// Any bytes as a trace: detected, or read by every reader, and what is accepted is replayed.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "workload/trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using namespace racktwin;
using namespace racktwin::workload;

// Completes requests in the order given, and holds the source to its contract.
void replay(Source& source, std::int64_t expected) {
  std::vector<RequestId> in_flight;
  Instant now;
  std::int64_t given = 0;
  for (;;) {
    if (const auto next = source.peek(); next && *next >= now) {
      const Request request = source.next();
      RACKTWIN_CHECK(request.arrival == *next && request.id.index == given);
      RACKTWIN_CHECK(request.isl >= 1 && request.osl >= 1 && request.max_tokens >= request.osl);
      RACKTWIN_CHECK(request.blocks.empty() || request.block_tokens > 0);
      now = request.arrival;
      in_flight.push_back(request.id);
      ++given;
      continue;
    }
    RACKTWIN_CHECK(!source.peek().has_value());
    if (in_flight.empty()) break;
    source.completed(in_flight.back(), now);
    in_flight.pop_back();
  }
  RACKTWIN_CHECK(given == expected);
}

void read(std::string_view text, const TraceOptions& options) {
  auto trace = open_trace_text(text, "input", options);
  if (!trace.ok()) {
    RACKTWIN_CHECK(!trace.error().message.empty());
    return;
  }
  RACKTWIN_CHECK(trace.value().info.stats.requests > 0);
  replay(*trace.value().source, trace.value().info.scaled.requests);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read(text, {});
  read(text, {.scaling = {.copies = 2, .compress = 3, .keep = 0.5},
              .max_context = 4000,
              .concurrency = 1,
              .held_rows = 2});
  read(text, {.closed_loop_sessions = false});
  for (const std::string& format : trace_formats())
    if (format != "servegen") read(text, {.format = format});
  return 0;
}
