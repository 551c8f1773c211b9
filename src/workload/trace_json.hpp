// One JSON object read strictly: absent is absent, a wrong type or range is remembered.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace racktwin::workload {

struct JsonFields {
  simdjson::dom::object object;
  std::string problem;  // the first; a sentence without its place

  bool has(std::string_view key) const;  // and is not null
  std::optional<simdjson::dom::element> get(std::string_view key) const;
  // Whole numbers also where written as 12.0. Refused: other types, fractions, the outside of
  // [low, high].
  std::optional<std::int64_t> whole(std::string_view key, std::int64_t low, std::int64_t high);
  std::optional<std::int64_t> tokens(std::string_view key);  // 0 to length_limit
  std::optional<double> number(std::string_view key, double low, double high);
  std::optional<std::string_view> text(std::string_view key);
  std::optional<std::string> label(std::string_view key);  // a text or a whole number, as text
  std::optional<simdjson::dom::array> list(std::string_view key);
  std::optional<simdjson::dom::object> section(std::string_view key);
  // Block ids: numbers as they are, texts by their hash; absent = none.
  std::vector<std::uint64_t> ids(std::string_view key);
  void fail(std::string message);
};

std::uint64_t hash_of(std::string_view text);  // FNV-1a, mixed
// Why a text is no JSON, in words.
std::string json_problem(std::string_view text, simdjson::error_code);

}  // namespace racktwin::workload
