#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.hpp"
#include "base/yaml.hpp"
#include "base/yaml_nodes.hpp"

namespace racktwin::yaml {
namespace detail {

std::string found(const Node& node) {
  switch (node.kind) {
    case Kind::null:
      return "nothing";
    case Kind::mapping:
      return "a mapping";
    case Kind::sequence:
      return "a list";
    case Kind::scalar:
      break;
  }
  if (node.text.size() <= 60) return '"' + node.text + '"';
  std::size_t cut = 57;
  while (cut > 0 && (static_cast<unsigned char>(node.text[cut]) & 0xc0) == 0x80) --cut;
  return '"' + node.text.substr(0, cut) + "...\"";
}

std::string State::where(const Place& place) const {
  if (!place.set.empty()) return "--set " + place.set;
  if (place.line == 0) return name;
  return fmt::format("{}:{}:{}", name, place.line, place.column);
}

void State::refuse(const Place& place, std::string message, Error::Code code) {
  if (!error) error = Error{code, std::move(message), where(place)};
}

Child* State::find(std::size_t node, std::string_view key) {
  if (node == absent) return nullptr;
  for (Child& child : nodes[node].children)
    if (child.key == key) return &child;
  return nullptr;
}

Child* State::take(std::size_t node, std::string_view key) {
  if (error || node == absent) return nullptr;
  Child* child = find(node, key);
  if (child) {
    child->used = true;
  } else {
    auto& asked = nodes[node].asked;
    if (std::find(asked.begin(), asked.end(), key) == asked.end()) asked.emplace_back(key);
  }
  return child;
}

}  // namespace detail

namespace {

using detail::absent;
using detail::Child;
using detail::found;
using detail::Kind;
using detail::Node;
using detail::Place;
using detail::State;

// "greater than 0", "from 0 to 1"; numbers through `show`.
template <class Show>
std::string describe(Range range, Show show) {
  const bool low = range.low > -std::numeric_limits<double>::max();
  const bool high = range.high < std::numeric_limits<double>::max();
  if (low && high)
    return range.open_low
               ? fmt::format("greater than {} and at most {}", show(range.low), show(range.high))
               : fmt::format("from {} to {}", show(range.low), show(range.high));
  if (low)
    return fmt::format("{} {}", range.open_low ? "greater than" : "at least", show(range.low));
  return high ? fmt::format("at most {}", show(range.high)) : "any finite number";
}

bool within(Range range, double value) {
  return (range.open_low ? value > range.low : value >= range.low) && value <= range.high;
}

bool is_not_finite(std::string_view text) {
  std::string lower;
  for (const char c : text)
    if (c != '.' && c != '+' && c != '-')
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

// Reads the scalar `node` as a number within `range`, or refuses the document.
std::optional<double> number(State& state, std::string_view key, const Node& node, Range range) {
  const auto plain = [](double bound) { return fmt::format("{}", bound); };
  const auto value = node.kind == Kind::scalar ? parse_number(node.text) : std::nullopt;
  if (!value) {
    const bool odd = node.kind == Kind::scalar && is_not_finite(node.text);
    state.refuse(node.place,
                 fmt::format("{} needs a {}number ({}), found {}", key, odd ? "finite " : "",
                             describe(range, plain), found(node)));
    return std::nullopt;
  }
  if (!within(range, *value)) {
    state.refuse(node.place,
                 fmt::format("{} must be {}, found {}", key, describe(range, plain), node.text));
    return std::nullopt;
  }
  return value;
}

// The same for a whole number of type Int.
template <class Int>
std::optional<Int> whole(State& state, std::string_view key, const Node& node, Range range) {
  Int value = 0;
  const char* const last = node.text.data() + node.text.size();
  const auto [end, code] = std::from_chars(node.text.data(), last, value);
  const auto plain = [](double bound) { return fmt::format("{}", bound); };
  if (node.kind != Kind::scalar || end != last || node.text.empty() ||
      (code != std::errc{} && code != std::errc::result_out_of_range)) {
    state.refuse(node.place, fmt::format("{} needs a whole number ({}), found {}", key,
                                         describe(range, plain), found(node)));
    return std::nullopt;
  }
  if (code == std::errc::result_out_of_range || !within(range, static_cast<double>(value))) {
    range.low = std::max(range.low, static_cast<double>(std::numeric_limits<Int>::min()));
    range.high = std::min(range.high, static_cast<double>(std::numeric_limits<Int>::max()));
    state.refuse(node.place,
                 fmt::format("{} must be {}, found {}", key, describe(range, plain), found(node)));
    return std::nullopt;
  }
  return value;
}

}  // namespace

bool Section::has(std::string_view key) const {
  return state_->find(node_, key) != nullptr;
}

bool Section::has_value(std::string_view key) {
  const Child* child = state_->take(node_, key);
  return child && state_->nodes[child->node].kind != Kind::null;
}

std::vector<std::string> Section::keys() const {
  std::vector<std::string> names;
  if (node_ != absent)
    for (const Child& child : state_->nodes[node_].children) names.push_back(child.key);
  return names;
}

void Section::field(std::string_view key, bool& value) {
  const Child* child = state_->take(node_, key);
  if (!child) return;
  const Node& node = state_->nodes[child->node];
  if (node.kind == Kind::scalar && (node.text == "true" || node.text == "false"))
    value = node.text == "true";
  else
    state_->refuse(node.place, fmt::format("{} needs true or false, found {}", key, found(node)));
}

void Section::field(std::string_view key, std::string& value) {
  const Child* child = state_->take(node_, key);
  if (!child) return;
  const Node& node = state_->nodes[child->node];
  if (node.kind == Kind::scalar)
    value = node.text;
  else
    state_->refuse(node.place, fmt::format("{} needs a text, found {}", key, found(node)));
}

void Section::field(std::string_view key, int& value, Range range) {
  if (const Child* child = state_->take(node_, key))
    value = whole<int>(*state_, key, state_->nodes[child->node], range).value_or(value);
}

void Section::field(std::string_view key, std::int64_t& value, Range range) {
  if (const Child* child = state_->take(node_, key))
    value = whole<std::int64_t>(*state_, key, state_->nodes[child->node], range).value_or(value);
}

void Section::field(std::string_view key, std::uint64_t& value) {
  if (const Child* child = state_->take(node_, key))
    value = whole<std::uint64_t>(*state_, key, state_->nodes[child->node], not_negative)
                .value_or(value);
}

void Section::field(std::string_view key, double& value, Range range) {
  if (const Child* child = state_->take(node_, key))
    value = number(*state_, key, state_->nodes[child->node], range).value_or(value);
}

void Section::quantity(std::string_view key, double& amount, Dim dim, Range range) {
  const Child* child = state_->take(node_, key);
  if (!child) return;
  const Node& node = state_->nodes[child->node];
  if (node.kind != Kind::scalar)
    return state_->refuse(
        node.place, fmt::format("{} needs a number with its unit, found {}", key, found(node)));
  const auto parsed = parse_amount(node.text, dim);
  if (!parsed.ok())
    return state_->refuse(node.place, fmt::format("{}: {}", key, parsed.error().message));
  if (!within(range, parsed.value())) {
    const auto show = [&](double bound) { return format_amount(bound, dim); };
    return state_->refuse(
        node.place, fmt::format("{} must be {}, found {}", key, describe(range, show), node.text));
  }
  amount = parsed.value();
}

void Section::field(std::string_view key, std::vector<std::string>& value) {
  const Child* child = state_->take(node_, key);
  if (!child) return;
  const Node& node = state_->nodes[child->node];
  if (node.kind != Kind::sequence)
    return state_->refuse(node.place,
                          fmt::format("{} needs a list of texts, found {}", key, found(node)));
  std::vector<std::string> read;
  for (const Child& item : node.children) {
    const Node& entry = state_->nodes[item.node];
    if (entry.kind != Kind::scalar)
      return state_->refuse(entry.place,
                            fmt::format("{} needs texts in its list, found {}", key, found(entry)));
    read.push_back(entry.text);
  }
  value = std::move(read);
}

void Section::field(std::string_view key, std::vector<double>& value, Range range) {
  const Child* child = state_->take(node_, key);
  if (!child) return;
  const Node& node = state_->nodes[child->node];
  if (node.kind != Kind::sequence)
    return state_->refuse(node.place,
                          fmt::format("{} needs a list of numbers, found {}", key, found(node)));
  std::vector<double> read;
  for (const Child& item : node.children) {
    const auto entry = number(*state_, key, state_->nodes[item.node], range);
    if (!entry) return;
    read.push_back(*entry);
  }
  value = std::move(read);
}

void Section::choice(std::string_view key, int& index, const std::vector<std::string>& names) {
  const Child* child = state_->take(node_, key);
  if (!child) return;
  const Node& node = state_->nodes[child->node];
  if (node.kind != Kind::scalar)
    return state_->refuse(node.place, fmt::format("{} needs one of: {}; found {}", key,
                                                  fmt::join(names, ", "), found(node)));
  const auto it = std::find(names.begin(), names.end(), node.text);
  if (it == names.end()) return state_->refuse(node.place, unknown_name(key, node.text, names));
  index = static_cast<int>(it - names.begin());
}

Section Section::section(std::string_view key) {
  const Child* child = state_->take(node_, key);
  if (!child) return {state_, absent};
  Node& node = state_->nodes[child->node];
  if (node.kind == Kind::null) return {state_, absent};
  if (node.kind != Kind::mapping) {
    state_->refuse(node.place, fmt::format("{} needs a mapping, found {}", key, found(node)));
    return {state_, absent};
  }
  node.opened = true;
  return {state_, child->node};
}

std::vector<Section> Section::list(std::string_view key) {
  const Child* child = state_->take(node_, key);
  if (!child) return {};
  const Node& node = state_->nodes[child->node];
  if (node.kind == Kind::null) return {};
  std::vector<Section> sections;
  if (node.kind != Kind::sequence) {
    state_->refuse(node.place, fmt::format("{} needs a list, found {}", key, found(node)));
    return {};
  }
  for (const Child& item : node.children) {
    Node& entry = state_->nodes[item.node];
    if (entry.kind != Kind::mapping) {
      state_->refuse(entry.place,
                     fmt::format("{} needs mappings in its list, found {}", key, found(entry)));
      return {};
    }
    entry.opened = true;
    sections.push_back({state_, item.node});
  }
  return sections;
}

void Section::require(std::string_view key) {
  if (state_->take(node_, key)) return;
  std::string message = fmt::format("the key \"{}\" is missing", key);
  std::vector<std::string> strangers;
  if (node_ != absent)
    for (const Child& child : state_->nodes[node_].children)
      if (!child.used) strangers.push_back(child.key);
  if (const auto near = nearest_name(key, strangers))
    message += fmt::format("; is \"{}\" meant to be it?", *near);
  fail({}, std::move(message));
}

void Section::fail(std::string_view key, std::string message, Error::Code code) {
  const Child* child = key.empty() ? nullptr : state_->find(node_, key);
  const Place place = child             ? state_->nodes[child->node].place
                      : node_ != absent ? state_->nodes[node_].place
                                        : Place{};
  state_->refuse(place, std::move(message), code);
}

std::string Section::where(std::string_view key) const {
  const Child* child = key.empty() ? nullptr : state_->find(node_, key);
  if (child) return state_->where(state_->nodes[child->node].place);
  return state_->where(node_ != absent ? state_->nodes[node_].place : Place{});
}

}  // namespace racktwin::yaml
