// The discrete-event kernel. It knows time and order, and nothing of what is simulated.
//
// Order of events is total: (instant, phase, sequence). Two runs of the same calls execute
// the same events; digest() says so in 64 bits. Events at one instant and phase run in the
// order in which they were scheduled.
//
// An action is a plain function with an object and a number (decision record 0001): no
// allocation per event, 24 bytes. Cost per event: see des/queue.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.hpp"
#include "des/queue.hpp"

namespace racktwin::des {

// What happens first at one and the same instant.
enum class Phase : std::uint8_t {
  failure,     // a dead part must not finish work at the instant of its death
  completion,  // a step that ends at t frees its room before
  transfer,    // bytes that arrive at t, and before
  arrival,     // requests that come at t and can use that room; all before
  decision,    // schedulers form batches with everything known at t
  telemetry,   // and samplers see the state after it
};

struct Action {
  void (*function)(void* object, std::uint64_t argument) = nullptr;
  void* object = nullptr;
  std::uint64_t argument = 0;
};

// A member function as an action: bind<&Replica::end_step>(replica, step).
template <auto Method, class Object>
Action bind(Object& object, std::uint64_t argument = 0) {
  return {[](void* self, std::uint64_t value) { (static_cast<Object*>(self)->*Method)(value); },
          &object, argument};
}

struct EventId {
  std::uint64_t sequence = 0;  // unique in the run; 0 names no event
  std::uint32_t slot = 0;
};

class Simulation {
 public:
  Instant now() const { return now_; }

  EventId at(Instant when, Phase, Action);  // when >= now()
  EventId after(Seconds delay, Phase phase, Action action) {
    return at(now_ + delay, phase, action);
  }
  // True when the event was still pending; a no-op once it has run or was cancelled. O(1):
  // the dead entry leaves the heap when its time comes.
  bool cancel(EventId);

  // Runs every event before `horizon`; those at `horizon` and later stay pending, and now()
  // is `horizon` unless `stop()` was called.
  void run_until(Instant horizon);
  void stop() { stopped_ = true; }  // from within an action: no event runs after it

  // Nothing else happens at now(). May say false where only cancelled events are left.
  bool quiet() const { return queue_.empty() || queue_.top().ns > now_.ns(); }
  // Whether another event of this phase or an earlier one is still to run at now().
  bool more_now(Phase);
  bool idle() const { return live_ == 0; }
  std::size_t pending() const { return live_; }
  std::uint64_t executed() const { return executed_; }

  // Of every event executed so far: when, phase. Mixed by callers with what they did.
  std::uint64_t digest() const { return digest_; }
  void mark(std::uint64_t value);  // adds a value of the model to the digest

  // Tests only: simultaneous events of one phase run in a seeded random order.
  void shuffle_ties(std::uint64_t seed) { tie_seed_ = seed; }

 private:
  struct Slot {
    Action action;
    std::uint64_t order = 0;  // of the event that holds it; 0 = free
  };

  Instant now_;
  bool stopped_ = false;
  EventQueue queue_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::uint64_t next_sequence_ = 1, executed_ = 0, digest_ = 0x243f6a8885a308d3u, tie_seed_ = 0;
  std::size_t live_ = 0;
};

}  // namespace racktwin::des
