// A Hugging Face JSON text as typed look-ups that remember the first thing wrong. The one
// place that knows the JSON library is hf_json.cpp. Used by the hf_*.cpp files only.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace racktwin::catalog {

// One object of the text; an absent object answers every question as if it were empty.
// After the first error every answer is the fallback.
class HfObject {
 public:
  bool has(std::string_view key) const;  // there, and not null
  std::vector<std::string> keys() const;

  // From 0 to 2^31 - 1; a number with a zero fraction will do.
  std::int64_t integer(std::string_view key, std::int64_t fallback) const;
  // The first of `keys` that is there; an error, naming the first, when none is.
  std::int64_t require(std::initializer_list<std::string_view> keys) const;
  double real(std::string_view key, double fallback) const;
  bool flag(std::string_view key, bool fallback) const;
  std::string text(std::string_view key) const;  // empty when absent
  bool is_text(std::string_view key) const;
  bool is_list(std::string_view key) const;
  // Empty when absent; an error unless all entries are of the kind.
  std::vector<std::int64_t> integers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  HfObject object(std::string_view key) const;
  std::vector<HfObject> objects(std::string_view key) const;

  // Keeps the first error; `fail` is for readers of the values.
  void fail(std::string message, Error::Code code = Error::Code::invalid_input) const;
  bool failed() const { return error_->has_value(); }

 private:
  friend class HfDocument;
  HfObject(const nlohmann::json* json, std::optional<Error>* error) : json_(json), error_(error) {}
  const nlohmann::json* find(std::string_view key) const;
  const nlohmann::json* json_;  // nullptr when absent
  std::optional<Error>* error_;
};

class HfDocument {
 public:
  // Refused: no JSON (with line and column), no object at the top. Python's NaN and Infinity
  // are read as null.
  static Result<HfDocument> parse(std::string_view text, const std::string& name);
  HfDocument(HfDocument&&) noexcept;
  HfDocument& operator=(HfDocument&&) noexcept;
  ~HfDocument();

  HfObject top() const;
  const std::optional<Error>& error() const { return *error_; }

 private:
  HfDocument();
  std::unique_ptr<nlohmann::json> json_;
  std::unique_ptr<std::optional<Error>> error_;
};

}  // namespace racktwin::catalog
