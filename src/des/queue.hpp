// The pending events in order: a heap for the near future, unsorted buckets for the rest.
//
// near_: a 4-ary heap of all keys up to near_last_, small enough to stay in the first-level
// cache. Every later key lies in the bucket (level, digit), where `level` is the highest
// hexadecimal digit in which its instant differs from base_, and `digit` its value there: a
// radix heap (Ahuja, Mehlhorn, Orlin & Tarjan 1990) that stops sorting at bucket_small keys.
// When near_ runs empty the least bucket is dealt out to lower levels until it is small, and
// becomes the new heap. A key is moved a few times, in sequence; a heap of 100,000 misses the
// cache on every level instead. The order that comes out is that of the keys alone.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace racktwin::des {

class EventQueue {
 public:
  struct Key {
    std::int64_t ns;      // >= 0
    std::uint64_t order;  // among those of one instant; unique
    std::uint32_t slot;   // the caller's
    friend bool operator<(const Key& a, const Key& b) {
      return a.ns < b.ns || (a.ns == b.ns && a.order < b.order);
    }
  };

  bool empty() const { return near_.empty(); }
  const Key& top() const { return near_.front(); }  // the least; !empty()
  void pop();                                       // !empty()
  // Cost: O(log near) or O(1) now, and at most 16 sequential moves later, 2 or 3 as a rule.
  void push(const Key& key) {
    if (key.ns > near_last_) return push_far(key);
    push_near(key);
    if (near_.size() > spill_above_) spill();
  }

 private:
  static constexpr std::size_t bucket_small = 64, near_large = 512, chunk_keys = 42;
  static constexpr int digit_bits = 4, digits = 1 << digit_bits, levels = 64 / digit_bits;
  struct Chunk {  // 1 KiB
    std::array<Key, chunk_keys> keys;
    Chunk* next = nullptr;
    std::uint32_t size = 0;
  };
  struct Bucket {
    Chunk* last = nullptr;  // the only one that is not full; the others hang from it
    std::size_t size = 0;
  };

  void push_near(const Key&);
  void push_far(const Key&);
  void refill();  // !empty far; near_.empty()
  void spill();   // the later half of near_ to the buckets
  Chunk* new_chunk();

  std::vector<Key> near_;
  std::int64_t near_last_ = std::numeric_limits<std::int64_t>::max();  // while far_ is empty
  std::size_t spill_above_ = near_large;
  std::int64_t base_ = 0;  // <= every key in a bucket
  std::size_t far_ = 0;    // keys in buckets
  std::array<std::array<Bucket, digits>, levels> buckets_;
  std::array<std::uint32_t, levels> occupied_digits_{};
  std::uint32_t occupied_levels_ = 0;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  Chunk* free_chunks_ = nullptr;
};

}  // namespace racktwin::des
