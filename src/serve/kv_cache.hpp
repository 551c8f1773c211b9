// Paged KV cache of one attention rank, with prefix reuse by chained block name.
//
// Invariant: used + free == total, after every call. A block is *private* (counted, without a
// name), *named* and in use (some request refers to it), named and *evictable* (kept for
// reuse, counts as free), or empty. Room is made by evicting the least recently used name.
// Two requests that compute the same prefix at once share the first one's blocks when both
// are published (as SGLang's radix cache does; vLLM keeps the second copy until it ends).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "serve/lru_index.hpp"

namespace racktwin::serve {

class KvCache {
 public:
  explicit KvCache(std::int64_t blocks) : total_(blocks) {}

  std::int64_t total() const { return total_; }
  std::int64_t free() const {
    return total_ - private_ - static_cast<std::int64_t>(index_.size() - index_.linked());
  }
  std::int64_t used() const { return total_ - free(); }

  // Leading names that are here, stopping at the first that is not. Pure: no hit is counted,
  // nothing becomes recent.
  std::int64_t matched(std::span<const std::uint64_t> names) const;

  // Admission, all or nothing: refers to the first `matched` names (which are here) and takes
  // `fresh` private blocks. False leaves the cache as it was.
  bool admit(std::span<const std::uint64_t> names, std::int64_t matched, std::int64_t fresh,
             std::vector<std::uint32_t>& slots);
  // More private blocks; all or nothing.
  bool take(std::int64_t blocks);
  void give(std::int64_t blocks);  // private blocks back

  // The first `count` names are computed now: private blocks get their names (those beyond
  // slots.size()). Returns how many private blocks were turned into named ones or, when
  // somebody else had published the name, were freed: the caller no longer has them.
  std::int64_t publish(std::span<const std::uint64_t> names, std::int64_t count,
                       std::vector<std::uint32_t>& slots);
  // The last first, so that the end of a prefix is evicted before its beginning.
  void unreference(std::vector<std::uint32_t>& slots);

  // Names evicted since the last call, oldest first, for the tier below; kept only when asked.
  void keep_evicted() { keep_evicted_ = true; }
  std::vector<std::uint64_t>& evicted() { return evicted_; }

 private:
  void make_room(std::int64_t blocks);  // evicts until `blocks` are empty; they are free
  LruIndex index_;
  std::int64_t total_ = 0, private_ = 0;
  bool keep_evicted_ = false;
  std::vector<std::uint64_t> evicted_;
};

}  // namespace racktwin::serve
