#include <fmt/format.h>

#include <cmath>

#include "base/text.hpp"
#include "base/yaml.hpp"

namespace racktwin::yaml {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// A word that YAML reads back as the same text without quotes, and that no reader takes for
// a number, a truth value or nothing.
bool plain(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  for (const char c : text)
    if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != '.' && c != '/')
      return false;
  for (const std::string_view word :
       {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity"}) {
    if (text.size() != word.size()) continue;
    bool same = true;
    for (std::size_t i = 0; i < word.size(); ++i) same = same && (text[i] | 0x20) == word[i];
    if (same) return false;
  }
  return true;
}

std::string quoted(std::string_view text) {
  if (plain(text)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + '"';
}

}  // namespace

void Writer::line(std::string_view key, std::string_view value) {
  // The first line of a list entry carries its dash.
  const std::size_t indent = static_cast<std::size_t>(depth_) * 2;
  if (first_of_item_)
    text_ += std::string(indent - 2, ' ') + "- ";
  else
    text_ += std::string(indent, ' ');
  first_of_item_ = false;
  text_ += quoted(key) + ':';
  if (!value.empty()) text_ += ' ' + std::string(value);
  text_ += '\n';
}

void Writer::field(std::string_view key, bool value) {
  line(key, value ? "true" : "false");
}
void Writer::field(std::string_view key, std::string_view value) {
  line(key, quoted(value));
}
void Writer::field(std::string_view key, std::int64_t value) {
  line(key, fmt::format("{}", value));
}
void Writer::field(std::string_view key, std::uint64_t value) {
  line(key, fmt::format("{}", value));
}
void Writer::field(std::string_view key, double value) {
  RACKTWIN_CHECK(std::isfinite(value));
  line(key, fmt::format("{}", value));
}
void Writer::quantity(std::string_view key, double amount, Dim dim) {
  RACKTWIN_CHECK(std::isfinite(amount));
  line(key, format_amount(amount, dim));
}

void Writer::field(std::string_view key, const std::vector<double>& values) {
  for (const double value : values) RACKTWIN_CHECK(std::isfinite(value));
  line(key, fmt::format("[{}]", fmt::join(values, ", ")));
}

void Writer::field(std::string_view key, const std::vector<std::string>& values) {
  std::vector<std::string> words;
  for (const std::string& value : values) words.push_back(quoted(value));
  line(key, fmt::format("[{}]", fmt::join(words, ", ")));
}

void Writer::open(std::string_view key) {
  line(key, {});
  ++depth_;
}
void Writer::open_list(std::string_view key) {
  open(key);
}
void Writer::item() {
  ++depth_;
  first_of_item_ = true;
}
void Writer::close_item() {
  // An entry without fields.
  if (first_of_item_)
    text_ += std::string(static_cast<std::size_t>(depth_) * 2 - 2, ' ') + "- {}\n";
  first_of_item_ = false;
  --depth_;
}
void Writer::close() {
  --depth_;
}

}  // namespace racktwin::yaml
