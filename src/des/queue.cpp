#include "des/queue.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace racktwin::des {

void EventQueue::pop() {
  const Key last = near_.back();
  near_.pop_back();
  const std::size_t size = near_.size();
  if (size == 0) {
    if (far_ > 0) refill();
    return;
  }
  std::size_t hole = 0;
  for (;;) {
    const std::size_t first = 4 * hole + 1;
    if (first >= size) break;
    std::size_t least = first;
    for (std::size_t child = first + 1; child < first + 4 && child < size; ++child)
      if (near_[child] < near_[least]) least = child;
    if (!(near_[least] < last)) break;
    near_[hole] = near_[least];
    hole = least;
  }
  near_[hole] = last;
}

void EventQueue::push_near(const Key& key) {
  std::size_t hole = near_.size();
  near_.push_back(key);
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / 4;
    if (!(key < near_[parent])) break;
    near_[hole] = near_[parent];
    hole = parent;
  }
  near_[hole] = key;
}

void EventQueue::push_far(const Key& key) {
  const auto difference = static_cast<std::uint64_t>(key.ns ^ base_);
  const int level = (63 - std::countl_zero(difference | 1)) / digit_bits;
  const auto digit = static_cast<std::size_t>(key.ns >> (level * digit_bits)) % digits;
  Bucket& bucket = buckets_[static_cast<std::size_t>(level)][digit];
  if (bucket.last == nullptr || bucket.last->size == chunk_keys) {
    Chunk* chunk = new_chunk();
    chunk->next = bucket.last;
    bucket.last = chunk;
    occupied_digits_[static_cast<std::size_t>(level)] |= 1u << digit;
    occupied_levels_ |= 1u << level;
  }
  bucket.last->keys[bucket.last->size++] = key;
  ++bucket.size;
  ++far_;
}

void EventQueue::refill() {
  spill_above_ = near_large;
  while (near_.empty()) {
    const int level = std::countr_zero(occupied_levels_);
    std::uint32_t& occupied = occupied_digits_[static_cast<std::size_t>(level)];
    const auto digit = static_cast<std::size_t>(std::countr_zero(occupied));
    const Bucket bucket = std::exchange(buckets_[static_cast<std::size_t>(level)][digit], Bucket{});
    occupied &= occupied - 1;
    if (occupied == 0) occupied_levels_ &= occupied_levels_ - 1;
    far_ -= bucket.size;

    // All of the bucket shares the digits from `level` up: the block it spans.
    const std::int64_t width = std::int64_t{1} << (level * digit_bits);
    base_ = bucket.last->keys[0].ns & -width;
    const bool small = bucket.size <= bucket_small || level == 0;
    for (Chunk* chunk = bucket.last; chunk != nullptr;) {
      for (std::uint32_t i = 0; i < chunk->size; ++i) {
        if (small)
          near_.push_back(chunk->keys[i]);
        else
          push_far(chunk->keys[i]);
      }
      Chunk* next = chunk->next;
      chunk->next = free_chunks_;
      free_chunks_ = chunk;
      chunk = next;
    }
    near_last_ = base_ + (width - 1);
  }
  std::sort(near_.begin(), near_.end());  // a sorted array is a heap
  if (far_ == 0) near_last_ = std::numeric_limits<std::int64_t>::max();
}

void EventQueue::spill() {
  if (far_ == 0) base_ = near_.front().ns;
  const auto middle = near_.begin() + static_cast<std::ptrdiff_t>(near_.size() / 2);
  std::nth_element(near_.begin(), middle, near_.end());
  const std::int64_t pivot = middle->ns;
  const auto later =
      std::partition(near_.begin(), near_.end(), [&](const Key& key) { return key.ns < pivot; });
  if (later == near_.begin() || pivot < base_) {
    spill_above_ = 2 * near_.size();  // one crowded instant, or out of the buckets' reach
  } else {
    near_last_ = pivot - 1;
    for (auto key = later; key != near_.end(); ++key) push_far(*key);
    near_.erase(later, near_.end());
  }
  std::sort(near_.begin(), near_.end());
}

EventQueue::Chunk* EventQueue::new_chunk() {
  if (free_chunks_ == nullptr) {
    chunks_.push_back(std::make_unique<Chunk>());
    free_chunks_ = chunks_.back().get();
  }
  Chunk* chunk = free_chunks_;
  free_chunks_ = chunk->next;
  chunk->next = nullptr;
  chunk->size = 0;
  return chunk;
}

}  // namespace racktwin::des
