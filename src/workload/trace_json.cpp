#include "workload/trace_json.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/rng.hpp"
#include "workload/trace_reader.hpp"

namespace racktwin::workload {

using simdjson::dom::element;
using simdjson::dom::element_type;

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix(hash);
}

std::string json_problem(std::string_view text, simdjson::error_code code) {
  for (const std::string_view word : {"NaN", "Infinity"})
    if (text.find(word) != std::string_view::npos)
      return fmt::format("has {}, which is no number", word);
  return fmt::format("is no JSON object ({})", simdjson::error_message(code));
}

namespace {
std::string shown(element value) {
  std::string text = simdjson::to_string(value);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}
}  // namespace

void JsonFields::fail(std::string message) {
  if (problem.empty()) problem = std::move(message);
}

std::optional<element> JsonFields::get(std::string_view key) const {
  element value;
  if (object.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
  return value;
}

bool JsonFields::has(std::string_view key) const {
  return get(key).has_value();
}

std::optional<double> JsonFields::number(std::string_view key, double low, double high) {
  const std::optional<element> value = get(key);
  if (!value) return std::nullopt;
  double number = 0;
  if (value->get(number) != simdjson::SUCCESS || !(number >= low && number <= high)) {
    fail(fmt::format("has {} {}, which is no number from {} to {}", key, shown(*value), low, high));
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> JsonFields::whole(std::string_view key, std::int64_t low,
                                              std::int64_t high) {
  const std::optional<element> value = get(key);
  if (!value) return std::nullopt;
  std::int64_t whole = 0;
  double number = 0;
  if (value->get(whole) == simdjson::SUCCESS) {
    if (whole >= low && whole <= high) return whole;
  } else if (value->get(number) == simdjson::SUCCESS && number == std::floor(number) &&
             number >= static_cast<double>(low) && number <= static_cast<double>(high)) {
    return static_cast<std::int64_t>(number);
  }
  fail(fmt::format("has {} {}, which is no whole number from {} to {}", key, shown(*value), low,
                   high));
  return std::nullopt;
}

std::optional<std::int64_t> JsonFields::tokens(std::string_view key) {
  return whole(key, 0, length_limit);
}

std::optional<std::string_view> JsonFields::text(std::string_view key) {
  const std::optional<element> value = get(key);
  if (!value) return std::nullopt;
  std::string_view text;
  if (value->get(text) == simdjson::SUCCESS) return text;
  fail(fmt::format("has {} {}, which is no text", key, shown(*value)));
  return std::nullopt;
}

std::optional<std::string> JsonFields::label(std::string_view key) {
  const std::optional<element> value = get(key);
  if (!value) return std::nullopt;
  if (value->is_string() || value->type() == element_type::INT64 ||
      value->type() == element_type::UINT64) {
    std::string_view text;
    return value->get(text) == simdjson::SUCCESS ? std::string(text) : simdjson::to_string(*value);
  }
  fail(fmt::format("has {} {}, which is no name", key, shown(*value)));
  return std::nullopt;
}

std::optional<simdjson::dom::array> JsonFields::list(std::string_view key) {
  const std::optional<element> value = get(key);
  if (!value) return std::nullopt;
  simdjson::dom::array list;
  if (value->get(list) == simdjson::SUCCESS) return list;
  fail(fmt::format("has {} {}, which is no list", key, shown(*value)));
  return std::nullopt;
}

std::optional<simdjson::dom::object> JsonFields::section(std::string_view key) {
  const std::optional<element> value = get(key);
  if (!value) return std::nullopt;
  simdjson::dom::object section;
  if (value->get(section) == simdjson::SUCCESS) return section;
  fail(fmt::format("has {} {}, which is no object", key, shown(*value)));
  return std::nullopt;
}

std::vector<std::uint64_t> JsonFields::ids(std::string_view key) {
  std::vector<std::uint64_t> ids;
  const std::optional<simdjson::dom::array> values = list(key);
  if (!values) return ids;
  for (const element value : *values) {
    std::uint64_t id = 0;
    std::string_view text;
    if (value.get(id) == simdjson::SUCCESS) {
      ids.push_back(id);
    } else if (value.get(text) == simdjson::SUCCESS) {
      ids.push_back(hash_of(text));
    } else {
      fail(fmt::format("has {} in {}, which is no block id (a whole number >= 0, or a text)",
                       shown(value), key));
      return ids;
    }
  }
  return ids;
}

}  // namespace racktwin::workload
