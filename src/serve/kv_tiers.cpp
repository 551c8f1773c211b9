#include "serve/kv_tiers.hpp"

#include <algorithm>
#include <cmath>

#include "base/time.hpp"

namespace racktwin::serve {

KvTierStack::KvTierStack(const KvTiers& spec, Bytes block) {
  const auto fill = [&](Tier& tier, Bytes capacity, BytesPerSecond bandwidth, Seconds latency) {
    if (!(capacity > Bytes{}) || !(bandwidth > BytesPerSecond{}) || !(block > Bytes{})) return;
    tier.capacity = static_cast<std::int64_t>(std::floor(capacity / block));
    tier.per_block = block / bandwidth;
    tier.latency = latency;
  };
  fill(tiers_[0], spec.host, spec.host_bandwidth, spec.host_latency);
  fill(tiers_[1], spec.nvme, spec.nvme_bandwidth, spec.nvme_latency);
  fill(tiers_[2], spec.remote, spec.remote_bandwidth, spec.remote_latency);
}

bool KvTierStack::present() const {
  return std::any_of(tiers_.begin(), tiers_.end(), [](const Tier& t) { return t.capacity > 0; });
}

int KvTierStack::tier_of(std::uint64_t name) const {
  for (int i = 0; i < tiers; ++i)
    if (tiers_[static_cast<std::size_t>(i)].index.find(name) != LruIndex::none) return i;
  return -1;
}

std::int64_t KvTierStack::matched(std::span<const std::uint64_t> names) const {
  std::int64_t count = 0;
  for (const std::uint64_t name : names) {
    if (tier_of(name) < 0) break;
    ++count;
  }
  return count;
}

std::int64_t KvTierStack::read(std::span<const std::uint64_t> names, std::int64_t now) {
  std::array<std::int64_t, tiers> blocks{};
  for (const std::uint64_t name : names) {
    const int i = tier_of(name);
    RACKTWIN_CHECK(i >= 0);
    LruIndex& index = tiers_[static_cast<std::size_t>(i)].index;
    const std::uint32_t slot = index.find(name);
    index.unlink(slot);
    index.link(slot);
    ++blocks[static_cast<std::size_t>(i)];
  }
  std::int64_t ready = now;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (blocks[i] == 0) continue;
    Tier& tier = tiers_[i];
    tier.read += blocks[i];
    const std::int64_t start = std::max(now, tier.busy_until);
    const Seconds service = tier.per_block * static_cast<double>(blocks[i]);
    tier.busy_until = (Instant::at_ns(start) + service).ns();
    ready = std::max(ready, (Instant::at_ns(tier.busy_until) + tier.latency).ns());
  }
  return ready;
}

void KvTierStack::put(std::size_t first, std::uint64_t name) {
  // Sinks through the stack: what a full tier drops goes to the next one that exists.
  for (std::size_t i = first; i < tiers_.size(); ++i) {
    Tier& tier = tiers_[i];
    if (tier.capacity == 0) continue;
    const std::uint32_t here = tier.index.find(name);
    if (here != LruIndex::none) {
      tier.index.unlink(here);
      tier.index.link(here);
      return;
    }
    tier.index.link(tier.index.insert(name));
    if (static_cast<std::int64_t>(tier.index.size()) <= tier.capacity) return;
    const std::uint32_t oldest = tier.index.oldest();
    name = tier.index.name(oldest);
    tier.index.unlink(oldest);
    tier.index.erase(oldest);
  }
}

void KvTierStack::sink(std::span<const std::uint64_t> names) {
  for (const std::uint64_t name : names) put(0, name);
}

}  // namespace racktwin::serve
