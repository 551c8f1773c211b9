#include "workload/trace_json.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/rng.hpp"
#include "workload/trace_reader.hpp"

namespace racktwin::workload {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::element;

static_assert(std::is_trivially_copyable_v<element> && sizeof(element) == 16);
static_assert(read_slack >= simdjson::SIMDJSON_PADDING);

element of(const std::byte (&view)[16]) {
  element value;
  std::memcpy(&value, view, sizeof value);
  return value;
}

void store(std::byte (&view)[16], element value) {
  std::memcpy(view, static_cast<const void*>(&value), sizeof value);
}

std::string short_text(element value) {
  std::string text = simdjson::to_string(value);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

std::string words_for(std::string_view text, simdjson::error_code code) {
  for (const std::string_view word : {"NaN", "Infinity"})
    if (text.find(word) != std::string_view::npos)
      return fmt::format("has {}, which is no number", word);
  return fmt::format("is no JSON ({})", simdjson::error_message(code));
}

}  // namespace

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix(hash);
}

struct JsonText::Parser {
  simdjson::dom::parser parser;
  simdjson::padded_string copy;
};

JsonText::JsonText() : parser_(std::make_unique<Parser>()) {}
JsonText::~JsonText() = default;

std::optional<std::string> JsonText::parse(std::string_view text, JsonValue& value) {
  element parsed;
  const auto code = parser_->parser.parse(text.data(), text.size(), false).get(parsed);
  if (code != SUCCESS) return words_for(text, code);
  store(value.view_, parsed);
  return std::nullopt;
}

std::optional<std::string> JsonText::parse_copy(std::string_view text, JsonValue& value) {
  parser_->copy = simdjson::padded_string(text);
  return parse({parser_->copy.data(), parser_->copy.size()}, value);
}

bool JsonValue::is_object() const {
  return of(view_).is_object();
}

std::optional<std::string_view> JsonValue::text() const {
  std::string_view text;
  if (of(view_).get(text) == SUCCESS) return text;
  return std::nullopt;
}

std::optional<std::vector<JsonValue>> JsonValue::list() const {
  simdjson::dom::array array;
  if (of(view_).get(array) != SUCCESS) return std::nullopt;
  std::vector<JsonValue> values;
  for (const element item : array) store(values.emplace_back().view_, item);
  return values;
}

std::optional<JsonValue> JsonValue::get(std::string_view key) const {
  element found;
  if (of(view_).at_key(key).get(found) != SUCCESS || found.is_null()) return std::nullopt;
  JsonValue value;
  store(value.view_, found);
  return value;
}

std::vector<std::pair<std::string_view, JsonValue>> JsonValue::members() const {
  std::vector<std::pair<std::string_view, JsonValue>> members;
  simdjson::dom::object object;
  if (of(view_).get(object) != SUCCESS) return members;
  for (const auto& [key, item] : object) {
    members.emplace_back(key, JsonValue{});
    store(members.back().second.view_, item);
  }
  return members;
}

std::string JsonValue::shown() const {
  return simdjson::to_string(of(view_));
}

bool JsonFields::open(const JsonValue& value) {
  if (!value.is_object()) return false;
  object = value;
  return true;
}

void JsonFields::fail(std::string message) {
  if (problem.empty()) problem = std::move(message);
}

bool JsonFields::has(std::string_view key) const {
  return object.get(key).has_value();
}

std::optional<double> JsonFields::number(std::string_view key, double low, double high) {
  const std::optional<JsonValue> value = object.get(key);
  if (!value) return std::nullopt;
  double number = 0;
  if (of(value->view_).get(number) == SUCCESS && number >= low && number <= high) return number;
  fail(fmt::format("has {} {}, which is no number from {} to {}", key, short_text(of(value->view_)),
                   low, high));
  return std::nullopt;
}

std::optional<std::int64_t> JsonFields::whole(std::string_view key, std::int64_t low,
                                              std::int64_t high) {
  const std::optional<JsonValue> value = object.get(key);
  if (!value) return std::nullopt;
  const element found = of(value->view_);
  std::int64_t whole = 0;
  double number = 0;
  if (found.get(whole) == SUCCESS) {
    if (whole >= low && whole <= high) return whole;
  } else if (found.get(number) == SUCCESS && number == std::floor(number) &&
             number >= static_cast<double>(low) && number < static_cast<double>(high)) {
    return static_cast<std::int64_t>(number);
  }
  fail(fmt::format("has {} {}, which is no whole number from {} to {}", key, short_text(found), low,
                   high));
  return std::nullopt;
}

std::optional<std::int64_t> JsonFields::tokens(std::string_view key) {
  return whole(key, 0, length_limit);
}

std::optional<std::string_view> JsonFields::text(std::string_view key) {
  const std::optional<JsonValue> value = object.get(key);
  if (!value) return std::nullopt;
  const std::optional<std::string_view> text = value->text();
  if (!text) fail(fmt::format("has {} {}, which is no text", key, short_text(of(value->view_))));
  return text;
}

std::optional<std::string> JsonFields::label(std::string_view key) {
  const std::optional<JsonValue> value = object.get(key);
  if (!value) return std::nullopt;
  const element found = of(value->view_);
  if (const auto text = value->text()) return std::string(*text);
  if (found.is_int64() || found.is_uint64()) return simdjson::to_string(found);
  fail(fmt::format("has {} {}, which is no name", key, short_text(found)));
  return std::nullopt;
}

std::optional<std::vector<JsonValue>> JsonFields::list(std::string_view key) {
  const std::optional<JsonValue> value = object.get(key);
  if (!value) return std::nullopt;
  auto list = value->list();
  if (!list) fail(fmt::format("has {} {}, which is no list", key, short_text(of(value->view_))));
  return list;
}

std::optional<JsonValue> JsonFields::section(std::string_view key) {
  const std::optional<JsonValue> value = object.get(key);
  if (!value || value->is_object()) return value;
  fail(fmt::format("has {} {}, which is no object", key, short_text(of(value->view_))));
  return std::nullopt;
}

std::vector<std::uint64_t> JsonFields::ids(std::string_view key) {
  std::vector<std::uint64_t> ids;
  const std::optional<JsonValue> value = object.get(key);
  if (!value) return ids;
  simdjson::dom::array array;
  if (of(value->view_).get(array) != SUCCESS) {
    fail(fmt::format("has {} {}, which is no list", key, short_text(of(value->view_))));
    return ids;
  }
  for (const element item : array) {
    std::uint64_t id = 0;
    std::string_view text;
    if (item.get(id) == SUCCESS) {
      ids.push_back(id);
    } else if (item.get(text) == SUCCESS) {
      ids.push_back(hash_of(text));
    } else {
      fail(fmt::format("has {} in {}, which is no block id (a whole number >= 0, or a text)",
                       short_text(item), key));
      return ids;
    }
  }
  return ids;
}

}  // namespace racktwin::workload
