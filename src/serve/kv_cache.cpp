#include "serve/kv_cache.hpp"

namespace racktwin::serve {

std::int64_t KvCache::matched(std::span<const std::uint64_t> names) const {
  std::int64_t count = 0;
  for (const std::uint64_t name : names) {
    if (index_.find(name) == LruIndex::none) break;
    ++count;
  }
  return count;
}

void KvCache::make_room(std::int64_t blocks) {
  while (total_ - private_ - static_cast<std::int64_t>(index_.size()) < blocks) {
    const std::uint32_t oldest = index_.oldest();
    RACKTWIN_CHECK(oldest != LruIndex::none);
    if (keep_evicted_) evicted_.push_back(index_.name(oldest));
    index_.unlink(oldest);
    index_.erase(oldest);
  }
}

bool KvCache::admit(std::span<const std::uint64_t> names, std::int64_t matched, std::int64_t fresh,
                    std::vector<std::uint32_t>& slots) {
  RACKTWIN_CHECK(slots.empty());
  // What is matched but in nobody's use counts as free now and will not any more.
  std::int64_t woken = 0;
  for (std::int64_t i = 0; i < matched; ++i) {
    const std::uint32_t slot = index_.find(names[static_cast<std::size_t>(i)]);
    RACKTWIN_CHECK(slot != LruIndex::none);
    slots.push_back(slot);
    if (index_.uses(slot) == 0) ++woken;
  }
  if (free() - woken < fresh) {
    slots.clear();
    return false;
  }
  for (const std::uint32_t slot : slots)
    if (index_.uses(slot)++ == 0) index_.unlink(slot);
  make_room(fresh);
  private_ += fresh;
  return true;
}

bool KvCache::take(std::int64_t blocks) {
  if (free() < blocks) return false;
  make_room(blocks);
  private_ += blocks;
  return true;
}

void KvCache::give(std::int64_t blocks) {
  RACKTWIN_CHECK(blocks <= private_);
  private_ -= blocks;
}

std::int64_t KvCache::publish(std::span<const std::uint64_t> names, std::int64_t count,
                              std::vector<std::uint32_t>& slots) {
  std::int64_t turned = 0;
  for (std::size_t i = slots.size(); i < static_cast<std::size_t>(count); ++i) {
    std::uint32_t slot = index_.find(names[i]);
    --private_;
    ++turned;
    if (slot == LruIndex::none) {
      slot = index_.insert(names[i]);
    } else if (index_.uses(slot) == 0) {
      index_.unlink(slot);
    }
    ++index_.uses(slot);
    slots.push_back(slot);
  }
  RACKTWIN_CHECK(private_ >= 0);
  return turned;
}

void KvCache::unreference(std::vector<std::uint32_t>& slots) {
  for (std::size_t i = slots.size(); i-- > 0;) {
    RACKTWIN_CHECK(index_.uses(slots[i]) > 0);
    if (--index_.uses(slots[i]) == 0) index_.link(slots[i]);
  }
  slots.clear();
}

}  // namespace racktwin::serve
