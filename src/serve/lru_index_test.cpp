#include "serve/lru_index.hpp"

#include <gtest/gtest.h>

#include <list>
#include <map>

namespace racktwin::serve {
namespace {

// Against a std::map and a std::list, with names that collide and names at the ends of the
// range, through growth and deletion.
TEST(LruIndex, does_what_a_map_and_a_list_do) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "lru");
    LruIndex index;
    std::map<std::uint64_t, std::uint32_t> slots;
    std::list<std::uint64_t> line;
    const auto linked = [&](std::uint64_t name) {
      return std::find(line.begin(), line.end(), name) != line.end();
    };
    const std::uint64_t range = seed % 2 == 0 ? 40 : 3000;
    for (int op = 0; op < 6000; ++op) {
      std::uint64_t name = rng.below(range);
      if (name % 7 == 0) name = UINT64_MAX - name;
      const std::uint32_t slot = index.find(name);
      ASSERT_EQ(slot != LruIndex::none, slots.contains(name));
      if (slot == LruIndex::none) {
        slots[name] = index.insert(name);
        ASSERT_EQ(index.name(slots[name]), name);
        ASSERT_EQ(index.uses(slots[name]), 0u);
        index.uses(slots[name]) = static_cast<std::uint32_t>(name % 1000);
      } else {
        ASSERT_EQ(slot, slots[name]);
        ASSERT_EQ(index.uses(slot), name % 1000);
        if (linked(name)) {
          index.unlink(slot);
          line.remove(name);
        } else if (rng.below(3) > 0) {
          index.link(slot);
          line.push_back(name);
        } else {
          index.erase(slot);
          slots.erase(name);
        }
      }
      ASSERT_EQ(index.size(), slots.size());
      ASSERT_EQ(index.linked(), line.size());
      if (line.empty()) {
        ASSERT_EQ(index.oldest(), LruIndex::none);
      } else {
        ASSERT_EQ(index.name(index.oldest()), line.front());
      }
    }
  }
}

}  // namespace
}  // namespace racktwin::serve
