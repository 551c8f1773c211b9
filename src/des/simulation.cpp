#include "des/simulation.hpp"

#include "base/check.hpp"
#include "base/rng.hpp"

namespace racktwin::des {

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
  const std::uint64_t sequence = next_sequence_++;
  slots_[slot] = {action, sequence};
  const std::uint64_t tie = tie_seed_ == 0 ? 0 : mix(tie_seed_, sequence) >> 8;
  push({when.ns(), (static_cast<std::uint64_t>(phase) << 56) | tie, sequence, slot});
  ++live_;
  return {sequence, slot};
}

bool Simulation::cancel(EventId id) {
  if (id.sequence == 0 || slots_[id.slot].sequence != id.sequence) return false;
  slots_[id.slot].sequence = 0;
  free_.push_back(id.slot);
  --live_;
  return true;
}

void Simulation::run_until(Instant horizon) {
  RACKTWIN_CHECK(horizon >= now_);
  stopped_ = false;
  while (!heap_.empty() && heap_.front().ns < horizon.ns()) {
    const Key key = heap_.front();
    pop();
    Slot& slot = slots_[key.slot];
    if (slot.sequence != key.sequence) continue;  // cancelled
    const Action action = slot.action;
    slot.sequence = 0;
    free_.push_back(key.slot);
    --live_;
    ++executed_;
    now_ = Instant::at_ns(key.ns);
    digest_ = mix(digest_ ^ static_cast<std::uint64_t>(key.ns)) ^ (key.order >> 56);
    action.function(action.object, action.argument);
    if (stopped_) return;
  }
  now_ = horizon;
}

void Simulation::mark(std::uint64_t value) {
  digest_ = mix(digest_ ^ value);
}

void Simulation::push(Key key) {
  std::size_t hole = heap_.size();
  heap_.push_back(key);
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / 4;
    if (!(key < heap_[parent])) break;
    heap_[hole] = heap_[parent];
    hole = parent;
  }
  heap_[hole] = key;
}

void Simulation::pop() {
  const Key last = heap_.back();
  heap_.pop_back();
  const std::size_t size = heap_.size();
  if (size == 0) return;
  std::size_t hole = 0;
  for (;;) {
    const std::size_t first = 4 * hole + 1;
    if (first >= size) break;
    std::size_t least = first;
    for (std::size_t child = first + 1; child < first + 4 && child < size; ++child)
      if (heap_[child] < heap_[least]) least = child;
    if (!(heap_[least] < last)) break;
    heap_[hole] = heap_[least];
    hole = least;
  }
  heap_[hole] = last;
}

}  // namespace racktwin::des
