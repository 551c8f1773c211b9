#include "catalog/hf_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace racktwin::catalog {
namespace {

using nlohmann::json;

// Python writes what JSON does not know: NaN, Infinity, -Infinity. Outside strings they
// become null, padded so that positions stay.
std::string without_python_numbers(std::string_view text) {
  std::string out(text);
  bool quoted = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (quoted) {
      if (out[i] == '\\')
        ++i;
      else if (out[i] == '"')
        quoted = false;
      continue;
    }
    if (out[i] == '"') quoted = true;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (out.compare(i, word.size(), word) != 0) continue;
      const std::string_view null = word.size() < 4 ? "0  " : "null     ";
      out.replace(i, word.size(), null.substr(0, word.size()));
      break;
    }
  }
  return out;
}

std::string position(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n');
  const std::size_t column =
      start == std::string_view::npos ? before.size() + 1 : before.size() - start;
  return fmt::format("{}:{}", line, column);
}

constexpr std::int64_t most = 2147483647;

std::optional<std::int64_t> whole(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= std::uint64_t{most} ? std::optional(static_cast<std::int64_t>(number))
                                         : std::nullopt;
  }
  if (value.is_number_integer()) return std::nullopt;  // below zero
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(number >= 0 && number <= static_cast<double>(most)) || number != std::floor(number))
    return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::string shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

}  // namespace

const json* HfObject::find(std::string_view key) const {
  if (!json_ || error_->has_value()) return nullptr;
  const auto found = json_->find(std::string(key));
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

bool HfObject::has(std::string_view key) const {
  return find(key) != nullptr;
}

std::vector<std::string> HfObject::keys() const {
  std::vector<std::string> names;
  if (json_)
    for (auto it = json_->begin(); it != json_->end(); ++it) names.push_back(it.key());
  return names;
}

std::int64_t HfObject::integer(std::string_view key, std::int64_t fallback) const {
  const json* value = find(key);
  if (!value) return fallback;
  const auto number = whole(*value);
  if (!number)
    fail(fmt::format("\"{}\" must be a whole number from 0 to {}, found {}", key, most,
                     shown(*value)));
  return number.value_or(fallback);
}

std::int64_t HfObject::require(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys)
    if (has(key)) {
      const std::int64_t value = integer(key, 0);
      if (value == 0) fail(fmt::format("\"{}\" must be greater than 0", key));
      return value;
    }
  fail(fmt::format("the key \"{}\" is missing", *keys.begin()));
  return 0;
}

double HfObject::real(std::string_view key, double fallback) const {
  const json* value = find(key);
  if (!value) return fallback;
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    fail(fmt::format("\"{}\" must be a finite number, found {}", key, shown(*value)));
    return fallback;
  }
  return value->get<double>();
}

bool HfObject::flag(std::string_view key, bool fallback) const {
  const json* value = find(key);
  if (!value) return fallback;
  if (!value->is_boolean()) {
    fail(fmt::format("\"{}\" must be true or false, found {}", key, shown(*value)));
    return fallback;
  }
  return value->get<bool>();
}

std::string HfObject::text(std::string_view key) const {
  const json* value = find(key);
  if (!value) return {};
  if (!value->is_string()) {
    fail(fmt::format("\"{}\" must be a text, found {}", key, shown(*value)));
    return {};
  }
  return value->get<std::string>();
}

bool HfObject::is_text(std::string_view key) const {
  const json* value = find(key);
  return value && value->is_string();
}

bool HfObject::is_list(std::string_view key) const {
  const json* value = find(key);
  return value && value->is_array();
}

std::vector<std::int64_t> HfObject::integers(std::string_view key) const {
  const json* value = find(key);
  std::vector<std::int64_t> list;
  if (!value) return list;
  if (value->is_array())
    for (const json& entry : *value) {
      const auto number = whole(entry);
      if (!number) break;
      list.push_back(*number);
    }
  if (!value->is_array() || list.size() != value->size()) {
    fail(fmt::format("\"{}\" must be a list of whole numbers from 0", key));
    return {};
  }
  return list;
}

std::vector<std::string> HfObject::texts(std::string_view key) const {
  const json* value = find(key);
  std::vector<std::string> list;
  if (!value) return list;
  if (value->is_array())
    for (const json& entry : *value) {
      if (!entry.is_string()) break;
      list.push_back(entry.get<std::string>());
    }
  if (!value->is_array() || list.size() != value->size()) {
    fail(fmt::format("\"{}\" must be a list of texts", key));
    return {};
  }
  return list;
}

HfObject HfObject::object(std::string_view key) const {
  const json* value = find(key);
  if (value && !value->is_object()) {
    fail(fmt::format("\"{}\" must be an object, found {}", key, shown(*value)));
    value = nullptr;
  }
  return {value, error_};
}

std::vector<HfObject> HfObject::objects(std::string_view key) const {
  const json* value = find(key);
  std::vector<HfObject> list;
  if (!value) return list;
  if (value->is_array())
    for (const json& entry : *value)
      if (entry.is_object()) list.push_back({&entry, error_});
  if (!value->is_array() || list.size() != value->size()) {
    fail(fmt::format("\"{}\" must be a list of objects", key));
    return {};
  }
  return list;
}

void HfObject::fail(std::string message, Error::Code code) const {
  if (!error_->has_value()) *error_ = Error{code, std::move(message), {}};
}

HfDocument::HfDocument()
    : json_(std::make_unique<json>()), error_(std::make_unique<std::optional<Error>>()) {}
HfDocument::HfDocument(HfDocument&&) noexcept = default;
HfDocument& HfDocument::operator=(HfDocument&&) noexcept = default;
HfDocument::~HfDocument() = default;

HfObject HfDocument::top() const {
  return {json_.get(), error_.get()};
}

Result<HfDocument> HfDocument::parse(std::string_view text, const std::string& name) {
  HfDocument document;
  const std::string plain = without_python_numbers(text);
  try {
    *document.json_ = json::parse(plain);
  } catch (const json::parse_error& error) {
    return Error{Error::Code::invalid_input, "this is no JSON",
                 name + ":" + position(plain, error.byte)};
  } catch (const std::exception& error) {
    return Error{Error::Code::invalid_input, std::string("this is no JSON: ") + error.what(), name};
  }
  if (!document.json_->is_object())
    return Error{Error::Code::invalid_input, "a config is a JSON object, found something else",
                 name};
  return document;
}

}  // namespace racktwin::catalog
