// The cache tiers below HBM of one replica: host memory, NVMe, a remote store. What HBM
// evicts sinks one tier, what a tier evicts sinks to the next; a prompt whose prefix goes on
// in a tier waits until those blocks have come up.
//
// Each tier serves one read after another at its bandwidth, after its latency.
// Simplified: sinking takes no read bandwidth (links and drives are full duplex here). Wrong
// for NVMe drives under heavy write load.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "serve/lru_index.hpp"
#include "serve/spec.hpp"

namespace racktwin::serve {

inline constexpr int tiers = 3;
inline constexpr std::array<std::string_view, tiers> tier_names = {"host", "nvme", "remote"};

class KvTierStack {
 public:
  // `block` = bytes of one KV block of the whole rank group.
  KvTierStack(const KvTiers&, Bytes block);

  bool present() const;
  // How many of `names`, from the first on, lie in some tier (each in its highest).
  std::int64_t matched(std::span<const std::uint64_t> names) const;
  // Queues the reads of those names; returns when the last has come up (nanoseconds), and
  // counts them as recent. `now` never goes back.
  std::int64_t read(std::span<const std::uint64_t> names, std::int64_t now);
  // Takes what HBM evicted, oldest first.
  void sink(std::span<const std::uint64_t> names);

  std::int64_t blocks_read(int tier) const { return tiers_[static_cast<std::size_t>(tier)].read; }

 private:
  struct Tier {
    LruIndex index;
    std::int64_t capacity = 0;  // blocks
    Seconds per_block, latency;
    std::int64_t busy_until = 0, read = 0;
  };
  int tier_of(std::uint64_t name) const;  // -1 = in none
  void put(std::size_t tier, std::uint64_t name);
  std::array<Tier, tiers> tiers_;
};

}  // namespace racktwin::serve
