#include "des/simulation.hpp"

#include "base/check.hpp"
#include "base/rng.hpp"

namespace racktwin::des {
namespace {

// An event's order: phase + 1 in the top byte, then the sequence number.
constexpr int phase_shift = 56;
constexpr std::uint64_t sequence_mask = (std::uint64_t{1} << phase_shift) - 1;

// A seeded permutation of the sequence numbers: each step (xor, multiplication by an odd
// number, xor with the own upper half) can be undone modulo 2^56.
std::uint64_t shuffled(std::uint64_t sequence, std::uint64_t seed) {
  std::uint64_t x = (sequence ^ mix(seed)) & sequence_mask;
  for (int round = 0; round < 3; ++round) {
    x = (x * 0x9e3779b97f4a7c15u) & sequence_mask;
    x ^= x >> 28;
  }
  return x;
}

}  // namespace

EventId Simulation::at(Instant when, Phase phase, Action action) {
  RACKTWIN_CHECK(when >= now_);
  RACKTWIN_CHECK(action.function != nullptr);
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  std::uint64_t sequence = next_sequence_++;
  if (tie_seed_ != 0) sequence = shuffled(sequence, tie_seed_);
  const std::uint64_t order = ((static_cast<std::uint64_t>(phase) + 1) << phase_shift) | sequence;
  slots_[slot] = {action, order};
  queue_.push({when.ns(), order, slot});
  ++live_;
  return {order, slot};
}

bool Simulation::cancel(EventId id) {
  if (id.sequence == 0 || slots_[id.slot].order != id.sequence) return false;
  slots_[id.slot].order = 0;
  free_.push_back(id.slot);
  --live_;
  return true;
}

bool Simulation::more_now(Phase phase) {
  while (!queue_.empty() && slots_[queue_.top().slot].order != queue_.top().order)
    queue_.pop();  // cancelled
  return !queue_.empty() && queue_.top().ns == now_.ns() &&
         (queue_.top().order >> phase_shift) <= static_cast<std::uint64_t>(phase) + 1;
}

void Simulation::run_until(Instant horizon) {
  RACKTWIN_CHECK(horizon >= now_);
  stopped_ = false;
  while (!queue_.empty() && queue_.top().ns < horizon.ns()) {
    const EventQueue::Key key = queue_.top();
    queue_.pop();
    if (!queue_.empty()) __builtin_prefetch(&slots_[queue_.top().slot]);
    Slot& slot = slots_[key.slot];
    if (slot.order != key.order) continue;  // cancelled
    const Action action = slot.action;
    slot.order = 0;
    free_.push_back(key.slot);
    --live_;
    ++executed_;
    now_ = Instant::at_ns(key.ns);
    digest_ = mix(digest_ ^ static_cast<std::uint64_t>(key.ns)) ^ (key.order >> phase_shift);
    action.function(action.object, action.argument);
    if (stopped_) return;
  }
  now_ = horizon;
}

void Simulation::mark(std::uint64_t value) {
  digest_ = mix(digest_ ^ value);
}

}  // namespace racktwin::des
