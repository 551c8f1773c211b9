// Strict YAML in, plain values out, with file:line:column in every refusal.
//
// A Document is a parsed file. A Section is one mapping of it; each field is asked for by
// name, and keeps the value it has when the key is absent (defaults live in the structs).
// The first thing wrong is remembered and everything after it is a no-op, so a reader is
// written top-down without a test after every line; finish() gives the verdict, and
// refuses keys that nobody asked for, with the nearest name.
//
//   RACKTWIN_TRY(yaml::Document document, yaml::Document::open(path));
//   yaml::Section top = document.top();
//   top.field("horizon", scenario.horizon, yaml::positive);
//   RACKTWIN_TRY_DONE(document.finish());
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace racktwin::yaml {

struct Range {  // inclusive; in base units for a quantity
  double low = -std::numeric_limits<double>::max();
  double high = std::numeric_limits<double>::max();
  bool open_low = false;  // low itself is refused
};
inline constexpr Range anything{};
inline constexpr Range positive{.low = 0, .open_low = true};
inline constexpr Range not_negative{.low = 0};
inline constexpr Range fraction{.low = 0, .high = 1};

namespace detail {
struct State;
}

class Section {
 public:
  bool has(std::string_view key) const;
  std::vector<std::string> keys() const;  // in file order
  void field(std::string_view key, bool& value);
  void field(std::string_view key, std::string& value);
  void field(std::string_view key, int& value, Range = anything);
  void field(std::string_view key, std::int64_t& value, Range = anything);
  void field(std::string_view key, std::uint64_t& value);
  void field(std::string_view key, double& value, Range = anything);
  template <Dim D>
  void field(std::string_view key, Quantity<D>& value, Range range = not_negative) {
    double amount = value.in(Quantity<D>::of_base_units(1));
    quantity(key, amount, D, range);
    value = Quantity<D>::of_base_units(amount);
  }
  void field(std::string_view key, std::vector<std::string>& value);
  void field(std::string_view key, std::vector<double>& value, Range = anything);
  // An absent key, or `null`, leaves the optional as it is.
  template <class T, class... R>
  void field(std::string_view key, std::optional<T>& value, R... range) {
    if (!has_value(key)) return;
    T given = value.value_or(T{});
    field(key, given, range...);
    value = given;
  }
  // One of `names`; `index` is its place.
  void choice(std::string_view key, int& index, const std::vector<std::string>& names);

  Section section(std::string_view key);            // empty when absent or null
  std::vector<Section> list(std::string_view key);  // of mappings; empty when absent or null

  // Refuses the document unless `key` is there, naming a misspelt key that is near.
  void require(std::string_view key);

  // Refuses the document, pointing at `key` (or at the section when it is absent).
  void fail(std::string_view key, std::string message, Error::Code = Error::Code::invalid_input);
  std::string where(std::string_view key = {}) const;  // "file:line:column"

 private:
  friend class Document;
  Section(detail::State* state, std::size_t node) : state_(state), node_(node) {}
  bool has_value(std::string_view key);  // there and not null; counts as asked for
  void quantity(std::string_view key, double& amount, Dim, Range);
  detail::State* state_;  // of the Document, which must outlive its sections
  std::size_t node_;
};

class Document {
 public:
  // Refused: a directory, a text over 64 MiB or over two million lines or values, malformed
  // YAML, several documents, a duplicate key, an anchor inside itself, nesting deeper than
  // 100 levels, and binary junk. Aliases share their value: no text grows by them.
  static Result<Document> open(const std::string& path);
  static Result<Document> parse(std::string_view text, std::string name);
  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  // "pools.0.replicas=4": replaces or adds one value, as if the file had said so; a value
  // that begins with [ { or a quote is read as YAML, any other is taken as it stands. Lists
  // grow by the index after their last. A later refusal of it is placed at `--set KEY`.
  // Call before top(): sections taken earlier do not see it.
  Result<Done> set(std::string_view assignment);

  Section top();
  Result<Done> finish();  // the first refusal, or the first key nobody asked for

 private:
  explicit Document(std::unique_ptr<detail::State> state);
  std::unique_ptr<detail::State> state_;
};

// Writes what Section reads: fields in the order given, quantities with units. Doubles: finite.
class Writer {
 public:
  void field(std::string_view key, bool value);
  void field(std::string_view key, std::string_view value);
  void field(std::string_view key, const char* value) { field(key, std::string_view(value)); }
  void field(std::string_view key, std::int64_t value);
  void field(std::string_view key, int value) { field(key, std::int64_t{value}); }
  void field(std::string_view key, std::uint64_t value);
  void field(std::string_view key, double value);  // shortest text that reads back equal
  template <Dim D>
  void field(std::string_view key, Quantity<D> value) {
    quantity(key, value.in(Quantity<D>::of_base_units(1)), D);
  }
  template <class T>
  void field(std::string_view key, const std::optional<T>& value) {  // nothing when absent
    if (value) field(key, *value);
  }
  void field(std::string_view key, const std::vector<double>& values);
  void field(std::string_view key, const std::vector<std::string>& values);
  void open(std::string_view key);       // a mapping under `key`
  void open_list(std::string_view key);  // a list of mappings
  void item();                           // the next mapping of the list
  void close();                          // mapping or list
  void close_item();
  std::string text() const { return text_; }

 private:
  void quantity(std::string_view key, double amount, Dim);
  void line(std::string_view key, std::string_view value);
  std::string text_;
  int depth_ = 0;
  bool first_of_item_ = false;
};

}  // namespace racktwin::yaml
