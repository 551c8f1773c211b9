// Block names in order of last use: a flat hash table from 64-bit name to slot, and a list
// through the slots from the oldest to the newest. The one structure under KV caches, cache
// tiers and the cache-aware router's memory. All operations O(1); a name is any 64-bit value.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.hpp"
#include "base/rng.hpp"

namespace racktwin::serve {

class LruIndex {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  std::uint32_t find(std::uint64_t name) const {
    if (table_.empty()) return none;
    for (std::size_t i = home(name);; i = (i + 1) & mask_) {
      if (table_[i] == none) return none;
      if (slots_[table_[i]].name == name) return table_[i];
    }
  }
  // `name` must be absent. It is not on the list until link().
  std::uint32_t insert(std::uint64_t name);
  void erase(std::uint32_t slot);  // must be off the list

  void link(std::uint32_t slot);    // as the newest; must be off the list
  void unlink(std::uint32_t slot);  // must be on the list
  std::uint32_t oldest() const { return head_; }

  std::uint64_t name(std::uint32_t slot) const { return slots_[slot].name; }
  std::uint32_t& uses(std::uint32_t slot) { return slots_[slot].uses; }
  std::uint32_t uses(std::uint32_t slot) const { return slots_[slot].uses; }
  std::size_t size() const { return size_; }
  std::size_t linked() const { return linked_; }

 private:
  struct Slot {
    std::uint64_t name = 0;
    std::uint32_t uses = 0;  // the owner's count of references
    std::uint32_t previous = none, next = none;
  };
  std::size_t home(std::uint64_t name) const { return mix(name) & mask_; }
  void place(std::uint32_t slot);
  void grow();

  std::vector<std::uint32_t> table_;  // open addressing, linear probing, at most half full
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t mask_ = 0, size_ = 0, linked_ = 0;
  std::uint32_t head_ = none, tail_ = none;
};

}  // namespace racktwin::serve
