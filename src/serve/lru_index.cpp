#include "serve/lru_index.hpp"

namespace racktwin::serve {

std::uint32_t LruIndex::insert(std::uint64_t name) {
  if (2 * (size_ + 1) > table_.size()) grow();
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slots_[slot] = {.name = name};
  place(slot);
  ++size_;
  return slot;
}

void LruIndex::place(std::uint32_t slot) {
  std::size_t i = home(slots_[slot].name);
  while (table_[i] != none) i = (i + 1) & mask_;
  table_[i] = slot;
}

void LruIndex::grow() {
  const std::size_t capacity = table_.empty() ? 64 : 2 * table_.size();
  std::vector<std::uint32_t> old(capacity, none);
  old.swap(table_);
  mask_ = capacity - 1;
  for (const std::uint32_t slot : old)
    if (slot != none) place(slot);
}

void LruIndex::erase(std::uint32_t slot) {
  std::size_t hole = home(slots_[slot].name);
  while (table_[hole] != slot) {
    RACKTWIN_CHECK(table_[hole] != none);
    hole = (hole + 1) & mask_;
  }
  // Backward-shift deletion: close the gap so that probes never meet a tombstone.
  for (std::size_t i = (hole + 1) & mask_; table_[i] != none; i = (i + 1) & mask_) {
    const std::size_t distance = (i - home(slots_[table_[i]].name)) & mask_;
    if (distance < ((i - hole) & mask_)) continue;
    table_[hole] = table_[i];
    hole = i;
  }
  table_[hole] = none;
  free_.push_back(slot);
  --size_;
}

void LruIndex::link(std::uint32_t slot) {
  slots_[slot].previous = tail_;
  slots_[slot].next = none;
  (tail_ == none ? head_ : slots_[tail_].next) = slot;
  tail_ = slot;
  ++linked_;
}

void LruIndex::unlink(std::uint32_t slot) {
  const Slot& s = slots_[slot];
  (s.previous == none ? head_ : slots_[s.previous].next) = s.next;
  (s.next == none ? tail_ : slots_[s.next].previous) = s.previous;
  --linked_;
}

}  // namespace racktwin::serve
