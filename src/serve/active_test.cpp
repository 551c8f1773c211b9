#include "serve/active.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.hpp"
#include "serve/fixtures.hpp"

namespace racktwin::serve {
namespace {

using fixtures::named;
using fixtures::request;

const std::vector<std::uint64_t>& names(ActiveTable& table, ActiveIndex i, int block_tokens) {
  return table.names(table[i], block_tokens);
}

TEST(ActiveTable, names_of_equal_blocks_are_those_given_without_the_partial_one) {
  ActiveTable table;
  const auto given = named(request(0, 0, 40, 1), 16, 7, 9).blocks;
  ASSERT_EQ(given.size(), 3u);
  const ActiveIndex i = table.add(named(request(0, 0, 40, 1), 16, 7, 9));
  EXPECT_EQ(names(table, i, 16), (std::vector<std::uint64_t>{given[0], given[1]}));
}

TEST(ActiveTable, small_blocks_share_as_far_as_the_large_ones_do) {
  ActiveTable table;
  // The first two blocks of 64 are common; the third parts them.
  const ActiveIndex a = table.add(named(request(0, 0, 192, 1), 64, 7, 2));
  const ActiveIndex b = table.add(named(request(1, 0, 192, 1), 64, 7, 2));
  const auto of_a = names(table, a, 16), of_b = names(table, b, 16);
  ASSERT_EQ(of_a.size(), 12u);
  EXPECT_EQ(std::set<std::uint64_t>(of_a.begin(), of_a.end()).size(), 12u);
  for (std::size_t k = 0; k < 12; ++k) EXPECT_EQ(of_a[k] == of_b[k], k < 8) << k;
}

TEST(ActiveTable, large_blocks_share_only_what_is_common_as_a_whole) {
  ActiveTable table;
  // Common: three blocks of 16, that is one whole block of 32 and a half.
  const ActiveIndex a = table.add(named(request(0, 0, 128, 1), 16, 7, 3));
  const ActiveIndex b = table.add(named(request(1, 0, 128, 1), 16, 7, 3));
  const auto of_a = names(table, a, 32), of_b = names(table, b, 32);
  ASSERT_EQ(of_a.size(), 4u);
  for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(of_a[k] == of_b[k], k < 1) << k;
}

TEST(ActiveTable, sizes_that_do_not_divide_one_another_name_nothing) {
  ActiveTable table;
  const ActiveIndex i = table.add(named(request(0, 0, 100, 1), 24, 7, 9));
  EXPECT_TRUE(names(table, i, 16).empty());
  EXPECT_EQ(names(table, i, 48).size(), 2u);
  EXPECT_EQ(names(table, i, 24).size(), 4u);  // asked again for another size
}

// A trace may name fewer blocks than the prompt has.
TEST(ActiveTable, never_names_more_blocks_than_were_given_or_than_are_whole) {
  Rng rng(1, "names");
  for (int k = 0; k < 2000; ++k) {
    ActiveTable table;
    auto r = named(request(0, 0, 1 + static_cast<std::int64_t>(rng.below(300)), 1),
                   1 + static_cast<int>(rng.below(40)), 7, 3);
    const auto keep = static_cast<std::size_t>(rng.below(r.blocks.size() + 1));
    r.blocks.resize(keep);
    const int given = r.block_tokens, engine = 1 + static_cast<int>(rng.below(80));
    const std::int64_t isl = r.isl;
    const ActiveIndex i = table.add(std::move(r));
    const auto& found = names(table, i, engine);
    EXPECT_LE(static_cast<std::int64_t>(found.size()) * engine, isl);
    EXPECT_LE(static_cast<std::int64_t>(found.size()) * engine,
              static_cast<std::int64_t>(keep) * given);
    if (given % engine != 0 && engine % given != 0) {
      EXPECT_TRUE(found.empty());
    }
  }
}

TEST(ActiveTable, a_row_used_again_has_nothing_of_the_one_before) {
  ActiveTable table;
  const ActiveIndex a = table.add(named(request(0, 5, 64, 3), 16, 7, 9));
  EXPECT_EQ(names(table, a, 16).size(), 4u);
  const std::uint32_t epoch = table[a].epoch;
  table[a].preemptions = 3;
  table.remove(a);
  EXPECT_EQ(table.size(), 0u);
  const ActiveIndex b = table.add(named(request(1, 9, 32, 2), 16, 8, 9));
  EXPECT_EQ(b, a);
  EXPECT_GT(table[b].epoch, epoch);
  EXPECT_EQ(table[b].preemptions, 0);
  EXPECT_EQ(names(table, b, 16).size(), 2u);
  const ActiveIndex c = table.add(request(2, 9, 32, 2));
  EXPECT_TRUE(names(table, c, 16).empty());
  EXPECT_EQ(table.size(), 2u);
}

}  // namespace
}  // namespace racktwin::serve
