// JSON read strictly: absent is absent, a wrong type or range is remembered. The only door to
// the JSON library of the trace readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace racktwin::workload {

// A value of a text that was parsed: a view, good until its JsonText parses again.
class JsonValue {
 public:
  bool is_object() const;
  std::optional<std::string_view> text() const;
  std::optional<std::vector<JsonValue>> list() const;
  std::optional<JsonValue> get(std::string_view key) const;  // of an object; null is absent
  std::vector<std::pair<std::string_view, JsonValue>> members() const;  // likewise, in order
  std::string shown() const;                                            // as JSON

 private:
  friend class JsonText;
  friend struct JsonFields;
  alignas(8) std::byte view_[16] = {};
};

class JsonText {
 public:
  JsonText();
  ~JsonText();
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;
  // `text` has read_slack readable bytes behind it. Returns what is wrong, in words.
  std::optional<std::string> parse(std::string_view text, JsonValue& value);
  std::optional<std::string> parse_copy(std::string_view text, JsonValue& value);  // no slack

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

struct JsonFields {
  JsonValue object;
  std::string problem;  // the first; a sentence without its place

  bool open(const JsonValue&);           // false: it is no object
  bool has(std::string_view key) const;  // and is not null
  // Whole numbers also where written as 12.0. Refused: other types, fractions, the outside of
  // [low, high].
  std::optional<std::int64_t> whole(std::string_view key, std::int64_t low, std::int64_t high);
  std::optional<std::int64_t> tokens(std::string_view key);  // 0 to length_limit
  std::optional<double> number(std::string_view key, double low, double high);
  std::optional<std::string_view> text(std::string_view key);
  std::optional<std::string> label(std::string_view key);  // a text or a whole number, as text
  std::optional<std::vector<JsonValue>> list(std::string_view key);
  std::optional<JsonValue> section(std::string_view key);  // an object
  // Block ids: numbers as they are, texts by their hash; absent = none.
  std::vector<std::uint64_t> ids(std::string_view key);
  void fail(std::string message);
};

std::uint64_t hash_of(std::string_view text);  // FNV-1a, mixed

}  // namespace racktwin::workload
