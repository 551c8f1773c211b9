#include "serve/kv_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

namespace racktwin::serve {
namespace {

using Names = std::vector<std::uint64_t>;

// The same promises kept the slow way: a name has a count of users, or a place in the line of
// those to be evicted.
class NaiveCache {
 public:
  explicit NaiveCache(std::int64_t blocks) : total_(blocks) {}
  std::int64_t used() const {
    std::int64_t in_use = private_;
    for (const auto& [name, users] : users_) in_use += users > 0;
    return in_use;
  }
  std::int64_t free() const { return total_ - used(); }
  std::int64_t matched(const Names& names) const {
    std::int64_t count = 0;
    for (const std::uint64_t name : names) {
      if (!users_.contains(name)) break;
      ++count;
    }
    return count;
  }
  bool admit(const Names& names, std::int64_t matched, std::int64_t fresh, Names& held) {
    std::int64_t woken = 0;
    for (std::int64_t i = 0; i < matched; ++i) woken += users_[names[std::size_t(i)]] == 0;
    if (free() - woken < fresh) return false;
    for (std::int64_t i = 0; i < matched; ++i) {
      use(names[std::size_t(i)]);
      held.push_back(names[std::size_t(i)]);
    }
    take_room(fresh);
    private_ += fresh;
    return true;
  }
  bool take(std::int64_t blocks) {
    if (free() < blocks) return false;
    take_room(blocks);
    private_ += blocks;
    return true;
  }
  void give(std::int64_t blocks) { private_ -= blocks; }
  std::int64_t publish(const Names& names, std::int64_t count, Names& held) {
    const std::int64_t before = static_cast<std::int64_t>(held.size());
    for (std::size_t i = held.size(); i < std::size_t(count); ++i) {
      --private_;
      users_.try_emplace(names[i], 0);
      use(names[i]);
      held.push_back(names[i]);
    }
    return std::max<std::int64_t>(0, count - before);
  }
  void unreference(Names& held) {
    for (std::size_t i = held.size(); i-- > 0;)
      if (--users_[held[i]] == 0) line_.push_back(held[i]);
    held.clear();
  }
  Names evicted;

 private:
  void use(std::uint64_t name) {
    if (users_[name]++ == 0) std::erase(line_, name);
  }
  void take_room(std::int64_t blocks) {
    while (total_ - private_ - static_cast<std::int64_t>(users_.size()) < blocks) {
      evicted.push_back(line_.front());
      users_.erase(line_.front());
      line_.pop_front();
    }
  }
  std::int64_t total_, private_ = 0;
  std::map<std::uint64_t, int> users_;
  std::deque<std::uint64_t> line_;
};

// Requests with prompts from a few families, driven through both caches at once.
class Pair {
 public:
  explicit Pair(std::int64_t blocks) : real(blocks), naive(blocks) { real.keep_evicted(); }

  struct Held {
    Names names;
    std::vector<std::uint32_t> slots;
    Names naive_slots;
    std::int64_t own = 0;  // private blocks
  };
  bool admit(const Names& names, std::int64_t fresh) {
    Held held{.names = names, .slots = {}, .naive_slots = {}};
    const std::int64_t hit = real.matched(names);
    EXPECT_EQ(hit, naive.matched(names));
    const std::int64_t missing = static_cast<std::int64_t>(names.size()) - hit + fresh;
    const bool taken = real.admit(names, hit, missing, held.slots);
    EXPECT_EQ(taken, naive.admit(names, hit, missing, held.naive_slots));
    held.own = missing;
    if (taken) requests.push_back(std::move(held));
    compare();
    return taken;
  }
  void grow(std::size_t i, std::int64_t blocks) {
    const bool taken = real.take(blocks);
    EXPECT_EQ(taken, naive.take(blocks));
    if (taken) requests[i].own += blocks;
    compare();
  }
  void publish(std::size_t i) {
    Held& held = requests[i];
    const auto count = static_cast<std::int64_t>(held.names.size());
    const std::int64_t turned = real.publish(held.names, count, held.slots);
    EXPECT_EQ(turned, naive.publish(held.names, count, held.naive_slots));
    held.own -= turned;
    EXPECT_GE(held.own, 0);
    compare();
  }
  void end(std::size_t i) {
    real.unreference(requests[i].slots);
    naive.unreference(requests[i].naive_slots);
    real.give(requests[i].own);
    naive.give(requests[i].own);
    requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(i));
    compare();
  }
  void compare() const {
    EXPECT_EQ(real.used() + real.free(), real.total());
    EXPECT_GE(real.free(), 0);
    EXPECT_EQ(real.used(), naive.used());
    EXPECT_EQ(const_cast<KvCache&>(real).evicted(), naive.evicted);
  }
  KvCache real;
  NaiveCache naive;
  std::vector<Held> requests;
};

TEST(KvCache, does_what_a_naive_cache_does_under_random_use) {
  for (std::uint64_t seed = 1; seed <= 200 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "kv");
    Pair pair(static_cast<std::int64_t>(1 + rng.below(30)));
    for (int op = 0; op < 400; ++op) {
      const std::uint64_t kind = rng.below(10);
      if (kind < 4 || pair.requests.empty()) {
        Names names;
        const std::uint64_t family = rng.below(4), length = rng.below(9), shared = rng.below(9);
        for (std::uint64_t b = 0; b < length; ++b)
          names.push_back(b < shared ? 100 * family + b : mix(rng.bits()));
        pair.admit(names, static_cast<std::int64_t>(rng.below(4)));
        continue;
      }
      const auto i = static_cast<std::size_t>(rng.below(pair.requests.size()));
      if (kind < 6)
        pair.publish(i);
      else if (kind < 8)
        pair.grow(i, static_cast<std::int64_t>(rng.below(3)));
      else
        pair.end(i);
    }
    while (!pair.requests.empty()) pair.end(0);
    EXPECT_EQ(pair.real.used(), 0);
  }
}

// Every sequence of at most six operations on a cache of three blocks, over the prompts
// {a}, {a b}, {c} and {}.
TEST(KvCache, every_short_sequence_on_three_blocks_is_that_of_a_naive_cache) {
  const std::vector<Names> prompts = {{1}, {1, 2}, {3}, {}};
  constexpr int operations = 7;  // four admissions, publish, grow and end of the oldest
  std::int64_t sequences = 0;
  for (int length = 1; length <= 6; ++length) {
    int count = 1;
    for (int k = 0; k < length; ++k) count *= operations;
    for (int code = 0; code < count && !testing::Test::HasFailure(); ++code) {
      Pair pair(3);
      bool sensible = true;
      for (int k = 0, rest = code; k < length && sensible; ++k, rest /= operations) {
        const int op = rest % operations;
        if (op < 4) {
          pair.admit(prompts[static_cast<std::size_t>(op)], op == 3 ? 1 : 0);
        } else if (pair.requests.empty()) {
          sensible = false;  // the shorter sequence has been seen
        } else if (op == 4) {
          pair.publish(0);
        } else if (op == 5) {
          pair.grow(pair.requests.size() - 1, 1);
        } else {
          pair.end(0);
        }
      }
      sequences += sensible;
    }
  }
  EXPECT_GT(sequences, 10'000);
}

TEST(KvCache, a_refused_admission_changes_nothing) {
  KvCache cache(4);
  std::vector<std::uint32_t> a, b;
  const Names names = {1, 2};
  ASSERT_TRUE(cache.admit(names, 0, 2, a));
  cache.publish(names, 2, a);
  cache.unreference(a);
  ASSERT_TRUE(cache.take(1));
  EXPECT_EQ(cache.free(), 3);
  // Two hits wake the evictable blocks, so that one is left for two fresh ones.
  EXPECT_FALSE(cache.admit(names, 2, 2, b));
  EXPECT_TRUE(b.empty());
  EXPECT_EQ(cache.free(), 3);
  EXPECT_EQ(cache.matched(names), 2);
  EXPECT_TRUE(cache.admit(names, 2, 1, b));
  EXPECT_EQ(cache.free(), 0);
}

TEST(KvCache, the_end_of_a_prefix_is_evicted_before_its_beginning) {
  KvCache cache(3);
  std::vector<std::uint32_t> slots;
  const Names names = {1, 2, 3};
  ASSERT_TRUE(cache.admit(names, 0, 3, slots));
  cache.publish(names, 3, slots);
  cache.unreference(slots);
  ASSERT_TRUE(cache.take(1));
  EXPECT_EQ(cache.matched(names), 2);
  ASSERT_TRUE(cache.take(1));
  EXPECT_EQ(cache.matched(names), 1);
}

}  // namespace
}  // namespace racktwin::serve
