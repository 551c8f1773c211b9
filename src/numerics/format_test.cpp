#include "numerics/format.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace racktwin::numerics {
namespace {

double bits(Format format) {
  return bytes_per_element(format).in(unit::byte) * 8;
}

TEST(Format, the_table_has_each_format_once_at_its_own_place) {
  const auto table = all_formats();
  ASSERT_EQ(table.size(), static_cast<std::size_t>(formats));
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(table[i].format), i);
    EXPECT_EQ(&info(table[i].format), &table[i]);
    EXPECT_TRUE(names.insert(table[i].name).second) << table[i].name;
  }
}

TEST(Format, names_lead_back_to_their_format) {
  for (const FormatInfo& row : all_formats()) {
    const auto found = format_named(row.name);
    ASSERT_TRUE(found.has_value()) << row.name;
    EXPECT_EQ(*found, row.format);
  }
  for (const char* wrong : {"", "FP8", "fp4", "fp8 ", "bfloat16"})
    EXPECT_FALSE(format_named(wrong).has_value()) << wrong;
  const auto names = format_names();
  ASSERT_EQ(names.size(), all_formats().size());
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], all_formats()[i].name);
}

// Element bits plus the share of the block's scale.
// OCP MX v1.0, table 1: MXFP8 and MXFP4 blocks of 32 with an 8-bit E8M0 scale.
// NVFP4: blocks of 16 with an 8-bit E4M3 scale. AWQ/GPTQ int4: group of 128 with a 16-bit scale.
TEST(Format, storage_per_element_counts_the_scale) {
  EXPECT_DOUBLE_EQ(bits(Format::fp32), 32);
  EXPECT_DOUBLE_EQ(bits(Format::bf16), 16);
  EXPECT_DOUBLE_EQ(bits(Format::fp16), 16);
  EXPECT_DOUBLE_EQ(bits(Format::fp8), 8);
  EXPECT_DOUBLE_EQ(bits(Format::int8), 8);
  EXPECT_DOUBLE_EQ(bits(Format::mxfp8), 8 + 8.0 / 32);
  EXPECT_DOUBLE_EQ(bits(Format::nvfp4), 4 + 8.0 / 16);
  EXPECT_DOUBLE_EQ(bits(Format::mxfp4), 4 + 8.0 / 32);
  EXPECT_DOUBLE_EQ(bits(Format::int4), 4 + 16.0 / 128);
}

TEST(Format, a_scale_belongs_to_a_block_and_a_block_has_a_scale) {
  for (const FormatInfo& row : all_formats()) {
    EXPECT_EQ(row.block == 0, row.scale_bits == 0) << row.name;
    EXPECT_GE(bits(row.format), row.element_bits) << row.name;
    EXPECT_LT(bits(row.format), row.element_bits + 1) << row.name;  // under a bit of overhead
  }
}

// A multiplication runs in a format that has a peak of its own, and never in a coarser one than
// what is stored: fewer bits would lose what was kept.
TEST(Format, math_is_done_in_a_format_that_stands_for_itself) {
  for (const FormatInfo& row : all_formats()) {
    EXPECT_EQ(info(row.math).math, row.math) << row.name;
    EXPECT_GE(info(row.math).element_bits, row.element_bits) << row.name;
  }
  EXPECT_EQ(info(Format::mxfp4).math, Format::nvfp4);
  EXPECT_EQ(info(Format::int4).math, Format::bf16);  // weight-only: dequantised first
}

}  // namespace
}  // namespace racktwin::numerics
