#include "base/text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace racktwin {
namespace {

constexpr Dim seconds = Seconds::dim, bytes = Bytes::dim, rate = BytesPerSecond::dim;

std::string refusal(std::string_view text, Dim dim) {
  const auto amount = parse_amount(text, dim);
  return amount.ok() ? "accepted" : amount.error().message;
}

TEST(Amounts, are_read_with_their_units) {
  EXPECT_EQ(parse_amount("800 Gb/s", rate).value(), 100e9);
  EXPECT_EQ(parse_amount("288 GB", bytes).value(), 288e9);
  EXPECT_EQ(parse_amount("1GiB", bytes).value(), 1073741824);
  EXPECT_DOUBLE_EQ(parse_amount("  30   ms ", seconds).value(), 0.03);
  EXPECT_EQ(parse_amount("1e3 s", seconds).value(), 1000);
  EXPECT_EQ(parse_amount("-2 s", seconds).value(), -2);
  EXPECT_EQ(parse_quantity<FlopsPerSecond::dim>("2.5 PFLOPS").value().in(unit::TFLOPS), 2500);
}

TEST(Amounts, without_a_unit_of_their_kind_are_refused) {
  EXPECT_EQ(refusal("30", seconds),
            "\"30\" lacks a unit; write e.g. \"30 s\" (units: s, ms, us, ns, min, h, d)");
  EXPECT_NE(refusal("30 GB", seconds).find("has a unit of another kind"), std::string::npos);
  EXPECT_NE(refusal("30 gb", bytes).find("unknown unit \"gb\""), std::string::npos);
  for (const char* text :
       {"", "s", "nan s", "inf s", "-inf s", "1e999 s", "0x10 s", "1,5 s", "+1 s"})
    EXPECT_NE(refusal(text, seconds), "accepted") << text;
  EXPECT_EQ(refusal("1e308 TB", bytes), "\"1e308 TB\" is out of range");
}

RC_GTEST_PROP(Amounts, written_ones_read_back_to_the_same_double, (double amount)) {
  RC_PRE(std::isfinite(amount));
  for (const Dim dim : {seconds, bytes, rate, Watts::dim, Dollars::dim, Flops::dim, Tokens::dim,
                        TokensPerSecond::dim, PerSecond::dim, FlopsPerSecond::dim, Joules::dim}) {
    const auto back = parse_amount(format_amount(amount, dim), dim);
    RC_ASSERT(back.ok());
    RC_ASSERT(back.value() == amount);
  }
}

TEST(Amounts, are_written_as_people_would) {
  EXPECT_EQ(format_quantity(30 * unit::ms), "30 ms");
  EXPECT_EQ(format_quantity(288 * unit::GB), "288 GB");
  EXPECT_EQ(format_quantity(8 * unit::TBps), "8 TB/s");
  EXPECT_EQ(format_quantity(1400 * unit::watt), "1400 W");
}

TEST(Numbers, span_the_whole_text_and_are_finite) {
  EXPECT_EQ(parse_number("-1.5e3"), -1500);
  EXPECT_EQ(parse_integer("-42"), -42);
  for (const char* text : {"", " 1", "1 ", "1x", "nan", "inf", "1e999", "--1", "0x1"})
    EXPECT_FALSE(parse_number(text)) << text;
  for (const char* text : {"", "1.0", "1e3", "99999999999999999999", " 1"})
    EXPECT_FALSE(parse_integer(text)) << text;
}

TEST(Names, the_nearest_is_found_when_it_is_near) {
  const std::vector<std::string> known = {"replicas", "engine", "parallelism", "GB300"};
  EXPECT_EQ(nearest_name("replcas", known), "replicas");
  EXPECT_EQ(nearest_name("ENGINE", known), "engine");
  EXPECT_EQ(nearest_name("gb200", known), "GB300");
  EXPECT_FALSE(nearest_name("temperature", known));
  EXPECT_FALSE(nearest_name("x", {}));
  EXPECT_EQ(unknown_name("key", "replcas", known),
            "unknown key \"replcas\"; did you mean \"replicas\"? (known: replicas, engine, "
            "parallelism, GB300)");
}

}  // namespace
}  // namespace racktwin
