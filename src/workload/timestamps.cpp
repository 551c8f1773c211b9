#include "workload/timestamps.hpp"

#include <cstring>

namespace racktwin::workload {
namespace {

bool two_digits(const char* at, int& value) {
  const int a = at[0] - '0', b = at[1] - '0';
  value = 10 * a + b;
  return a >= 0 && a <= 9 && b >= 0 && b <= 9;
}

// Days since 1970-01-01 of a date of the Gregorian calendar (Hinnant's days_from_civil).
std::int64_t days_from_civil(std::int64_t year, int month, int day) {
  year -= month <= 2;
  const std::int64_t era = year / 400;
  const std::int64_t of_era = year - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

}  // namespace

bool Timestamps::read(std::string_view text, Value& value) {
  if (text.size() < 19 || !read_day(text.data())) return false;
  const char* at = text.data() + 10;
  int hour = 0, minute = 0, second = 0;
  if ((at[0] != ' ' && at[0] != 'T') || at[3] != ':' || at[6] != ':') return false;
  if (!two_digits(at + 1, hour) || !two_digits(at + 4, minute) || !two_digits(at + 7, second))
    return false;
  if (hour > 23 || minute > 59 || second > 60) return false;
  value.ns = day_ns_ + (hour * 3600 + minute * 60 + second) * std::int64_t{1000000000};
  return read_tail(text.substr(19), value);
}

bool Timestamps::read_day(const char* text) {
  if (std::memcmp(text, day_, sizeof day_) == 0) return true;
  int century = 0, year = 0, month = 0, day = 0;
  if (!two_digits(text, century) || !two_digits(text + 2, year) || text[4] != '-' ||
      !two_digits(text + 5, month) || text[7] != '-' || !two_digits(text + 8, day))
    return false;
  if (month < 1 || month > 12 || day < 1 || day > 31) return false;
  const int whole = 100 * century + year;
  if (whole < 1970 || whole > 2099) return false;
  std::memcpy(day_, text, sizeof day_);
  day_ns_ = days_from_civil(whole, month, day) * 86400 * std::int64_t{1000000000};
  return true;
}

bool Timestamps::read_tail(std::string_view tail, Value& value) {
  value.digits = 0;
  value.zone = false;
  std::size_t at = 0;
  if (!tail.empty() && tail[0] == '.') {
    std::int64_t scale = 100000000;
    for (at = 1; at < tail.size() && tail[at] >= '0' && tail[at] <= '9'; ++at, scale /= 10)
      value.ns += (tail[at] - '0') * scale;
    value.digits = static_cast<int>(at) - 1;
    if (value.digits == 0) return false;
  }
  tail.remove_prefix(at);
  if (tail.empty()) return true;
  value.zone = true;
  if (tail == "Z") return true;
  int hour = 0, minute = 0;
  if (tail.size() != 6 || (tail[0] != '+' && tail[0] != '-') || tail[3] != ':' ||
      !two_digits(tail.data() + 1, hour) || !two_digits(tail.data() + 4, minute))
    return false;
  const std::int64_t offset = (hour * 3600 + minute * 60) * std::int64_t{1000000000};
  value.ns += tail[0] == '+' ? -offset : offset;
  return true;
}

std::optional<std::int64_t> parse_timestamp(std::string_view text) {
  Timestamps timestamps;
  Timestamps::Value value;
  if (!timestamps.read(text, value)) return std::nullopt;
  return value.ns;
}

}  // namespace racktwin::workload
