#include "des/queue.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.hpp"

namespace racktwin::des {
namespace {

using Order = std::pair<std::int64_t, std::uint64_t>;  // ns, order

// The queue beside a sorted set: whatever is done to both, the least of both must agree.
class Twin {
 public:
  void push(std::int64_t ns) {
    const auto slot = static_cast<std::uint32_t>(++count_);
    // Orders fall and rise, so that the order of pushing does not decide.
    const std::uint64_t order = mix(count_) << 32 | count_;
    queue_.push({ns, order, slot});
    sorted_.emplace(ns, order);
  }
  void pop() {
    check();
    now_ = sorted_.begin()->first;
    sorted_.erase(sorted_.begin());
    queue_.pop();
    check();
  }
  void check() const {
    ASSERT_EQ(queue_.empty(), sorted_.empty());
    if (sorted_.empty()) return;
    ASSERT_EQ((Order{queue_.top().ns, queue_.top().order}), *sorted_.begin());
    ASSERT_EQ(queue_.top().slot, static_cast<std::uint32_t>(queue_.top().order));
  }
  void drain() {
    while (!sorted_.empty() && !testing::Test::HasFatalFailure()) pop();
  }
  std::size_t size() const { return sorted_.size(); }
  std::int64_t now() const { return now_; }

 private:
  EventQueue queue_;
  std::set<Order> sorted_;
  std::uint64_t count_ = 0;
  std::int64_t now_ = 0;
};

TEST(EventQueue, is_empty_at_first_and_after_the_last_pop) {
  Twin twin;
  twin.check();
  twin.push(5);
  twin.pop();
  twin.check();
}

// Delays of every magnitude from 1 ns to 100 years, at sizes from a handful to thousands:
// keys enter the heap, every level of buckets, and the spill from one to the other.
TEST(EventQueue, equals_a_sorted_set_under_random_pushes_and_pops) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed, "queue test");
    Twin twin;
    const std::size_t most = std::size_t{1} << rng.below(13);
    const auto magnitudes = static_cast<int>(1 + rng.below(48));  // 20,000 * 2^48 < 2^63
    for (int step = 0; step < 20'000 && !HasFatalFailure(); ++step) {
      const bool grow = twin.size() == 0 || (twin.size() < most && rng.uniform() < 0.55);
      if (!grow) {
        twin.pop();
        continue;
      }
      const auto bits = static_cast<int>(rng.below(static_cast<std::uint64_t>(magnitudes)));
      twin.push(twin.now() + static_cast<std::int64_t>(rng.below(std::uint64_t{1} << bits)));
      twin.check();
    }
    twin.drain();
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
}

TEST(EventQueue, a_crowd_at_one_instant_leaves_in_its_own_order) {
  Twin twin;
  for (int i = 0; i < 5'000; ++i) twin.push(1'000'000);
  for (int i = 0; i < 5'000; ++i) twin.push(i % 3 == 0 ? 999'999 : 1'000'001);
  twin.drain();
}

// One far timer makes the heap span a wide block; a burst inside that block must not break
// the order, nor must keys before it that come once the clock stands at its edge.
TEST(EventQueue, a_burst_beside_a_sparse_timer_keeps_the_order) {
  Twin twin;
  twin.push(std::int64_t{1} << 40);
  twin.push((std::int64_t{1} << 40) + (std::int64_t{1} << 35));
  twin.push(std::int64_t{3} << 50);
  for (int i = 0; i < 3'000; ++i) twin.push(i * 7919 % 100'003);
  for (int i = 0; i < 2'999; ++i) twin.pop();
  for (int i = 0; i < 3'000; ++i) twin.push(twin.now() + i * 104'729 % 1'000'003);
  for (int i = 0; i < 3'000; ++i) twin.pop();
  for (int i = 0; i < 3'000; ++i)
    twin.push((std::int64_t{1} << 40) + (std::int64_t{1} << 34) - i * 15'485'863LL % 1'000'000'007);
  twin.drain();
}

// The heap has moved on to a later block while the clock still stands before it: a crowd that
// comes in between must not be dealt into buckets that count from that later block.
TEST(EventQueue, a_crowd_between_the_clock_and_the_block_of_the_heap_keeps_the_order) {
  constexpr std::int64_t block = std::int64_t{1} << 40;
  Twin twin;
  for (int i = 0; i < 2'000; ++i) twin.push(3 * block + i * 65'537);
  twin.push(7);
  twin.push(block);
  twin.push(std::int64_t{3} << 50);
  twin.pop();
  for (int i = 0; i < 700; ++i) twin.push(twin.now() + i * 7919 % 100'003);
  for (int i = 0; i < 400; ++i) twin.push(block + i * 104'729 % 1'000'003);
  for (int i = 0; i < 700; ++i) twin.push(twin.now() + i * 7919 % 100'003);
  twin.drain();
}

TEST(EventQueue, the_ends_of_the_time_line_are_in_order) {
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  Twin twin;
  for (int i = 0; i < 2'000; ++i) twin.push(last);
  for (int i = 0; i < 2'000; ++i) twin.push(0);
  for (int i = 0; i < 2'000; ++i) twin.push(last - i);
  twin.drain();
}

}  // namespace
}  // namespace racktwin::des
