// Dates and times as traces write them: "2023-11-16 18:17:03.9799600",
// "2024-05-12 00:00:00+00:00", "2024-10-15T12:00:00.269Z".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace racktwin::workload {

// Remembers the day it read last, since rows of one day follow one another.
class Timestamps {
 public:
  struct Value {
    std::int64_t ns = 0;  // since 1970, in the zone named, or in UTC
    int digits = 0;       // of the fraction; those beyond nine are cut
    bool zone = false;    // one was named
  };
  bool read(std::string_view text, Value& value);  // false: no date and time

 private:
  bool read_day(const char* text);
  static bool read_tail(std::string_view tail, Value& value);
  char day_[10] = {};
  std::int64_t day_ns_ = 0;
};

std::optional<std::int64_t> parse_timestamp(std::string_view);  // ns since 1970

}  // namespace racktwin::workload
