// Where requests come from: a generator or a recorded trace, behind one interface, so that
// the same source drives the simulator, the live twin and a real endpoint.
#pragma once

#include <cstdint>
#include <optional>

#include "workload/request.hpp"

namespace racktwin::workload {

class Source {
 public:
  virtual ~Source() = default;
  // When the next request arrives, of those known now; nullopt = none, for now or (open
  // loops, or closed ones with nothing in flight) for good. Never earlier than the last
  // request given out, nor than the last completion told.
  virtual std::optional<Instant> peek() = 0;
  // That request. peek() has a value.
  virtual Request next() = 0;
  // Closed loops: `id` ended at `when`, which may bring the session's next turn. Told once
  // for every request given out, whether it was served or shed.
  virtual void completed(RequestId id, Instant when) = 0;
};

}  // namespace racktwin::workload
