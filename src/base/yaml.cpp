#include "base/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "base/yaml_nodes.hpp"

namespace racktwin::yaml {
namespace {

using detail::absent;
using detail::Child;
using detail::found;
using detail::Kind;
using detail::Node;
using detail::Place;
using detail::State;

constexpr std::size_t size_limit = std::size_t{64} << 20;
constexpr std::size_t node_limit = 2'000'000;
constexpr std::size_t depth_limit = 100;
constexpr std::int64_t bracket_limit = 10'000;

// Builds the node table from yaml-cpp's events. Aliases become shared indices, so nothing
// is expanded; the first thing wrong is kept in the state and the rest is ignored.
class Builder final : public YAML::EventHandler {
 public:
  Builder(State& state, Place fixed) : state_(state), fixed_(std::move(fixed)) {}

  std::size_t root() const { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    leaf(mark, anchor, Kind::null, {});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (state_.error) return;
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) return state_.refuse(place(mark), "alias of an unknown anchor");
    if (!state_.nodes[known->second].complete)
      return state_.refuse(place(mark), "an anchor is used inside its own value");
    state_.nodes[known->second].shared = true;
    attach(known->second, place(mark));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!known_tag(mark, tag)) return;
    leaf(mark, anchor, Kind::scalar, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    if (known_tag(mark, tag)) start(mark, anchor, Kind::sequence);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    if (known_tag(mark, tag)) start(mark, anchor, Kind::mapping);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    std::size_t node = absent;
    bool key_due = true;  // of a mapping: the next value is a key
    std::set<std::string> keys;
  };

  Place place(const YAML::Mark& mark) const {
    if (!fixed_.set.empty()) return fixed_;
    return {mark.line + 1, mark.column + 1, {}};
  }

  bool known_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!" || tag.starts_with("tag:yaml.org,2002:"))
      return true;
    state_.refuse(place(mark), fmt::format("the tag \"{}\" means nothing here", tag));
    return false;
  }

  std::size_t add(const YAML::Mark& mark, YAML::anchor_t anchor, Kind kind) {
    if (state_.nodes.size() >= node_limit) {
      state_.refuse(place(mark), fmt::format("more than {} values", node_limit));
      return absent;
    }
    state_.nodes.push_back(Node{.kind = kind, .place = place(mark)});
    if (anchor) anchors_[anchor] = state_.nodes.size() - 1;
    return state_.nodes.size() - 1;
  }

  void leaf(const YAML::Mark& mark, YAML::anchor_t anchor, Kind kind, const std::string& text) {
    if (state_.error) return;
    const std::size_t node = add(mark, anchor, kind);
    if (node == absent) return;
    state_.nodes[node].text = text;
    attach(node, place(mark));
  }

  void start(const YAML::Mark& mark, YAML::anchor_t anchor, Kind kind) {
    if (state_.error) return;
    if (open_.size() >= depth_limit)
      return state_.refuse(place(mark), fmt::format("nested deeper than {} levels", depth_limit));
    const std::size_t node = add(mark, anchor, kind);
    if (node == absent) return;
    state_.nodes[node].complete = false;
    attach(node, place(mark));
    open_.push_back({node, true, {}});
  }

  void end() {
    if (state_.error || open_.empty()) return;
    state_.nodes[open_.back().node].complete = true;
    open_.pop_back();
  }

  // Hands `node` to the innermost open mapping or sequence.
  void attach(std::size_t node, Place at) {
    if (state_.error) return;
    if (open_.empty()) {
      root_ = node;
      return;
    }
    Open& top = open_.back();
    auto& children = state_.nodes[top.node].children;
    if (state_.nodes[top.node].kind == Kind::sequence) {
      children.push_back({{}, node, std::move(at), false});
      return;
    }
    if (!top.key_due) {
      children.back().node = node;
      top.key_due = true;
      return;
    }
    if (state_.nodes[node].kind != Kind::scalar)
      return state_.refuse(at, "a key must be a plain name");
    const std::string& key = state_.nodes[node].text;
    if (!top.keys.insert(key).second)
      return state_.refuse(at, fmt::format("the key \"{}\" is given twice", key));
    children.push_back({key, absent, std::move(at), false});
    top.key_due = false;
  }

  State& state_;
  Place fixed_;
  std::size_t root_ = absent;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::size_t> anchors_;
};

// How long the UTF-8 sequence at `text[i]` is; 0 = it is none, or a control character.
std::size_t character_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
  if (lead < 0x80)
    return (lead >= 0x20 && lead != 0x7f) || lead == '\n' || lead == '\r' || lead == '\t' ? 1 : 0;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || i + length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  if (lead == 0xe0 && byte(i + 1) < 0xa0) return 0;   // longer than need be
  if (lead == 0xed && byte(i + 1) >= 0xa0) return 0;  // half of a surrogate pair
  if (lead == 0xf0 && byte(i + 1) < 0x90) return 0;
  if (lead == 0xf4 && byte(i + 1) >= 0x90) return 0;
  return length;
}

// Refuses what yaml-cpp would choke on: size, bytes that are no text, and brackets without
// end, for each of which its scanner keeps a token.
std::optional<Error> unreadable(std::string_view text, const std::string& name) {
  const auto error = [&](std::string message, std::string where) {
    return Error{Error::Code::invalid_input, std::move(message), std::move(where)};
  };
  if (text.size() > size_limit)
    return error(fmt::format("{} bytes of YAML; at most 64 MiB are read", text.size()), name);
  // Each value ends at a line or a comma, but for the last of a bracket.
  const auto ends =
      std::count_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == ','; });
  if (static_cast<std::size_t>(ends) > node_limit)
    return error(fmt::format("{} lines and commas; at most {} are read", ends, node_limit), name);
  std::int64_t brackets = 0;
  int line = 1;
  std::size_t line_start = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    const std::string where = length == 0 || brackets > bracket_limit
                                  ? fmt::format("{}:{}:{}", name, line, i - line_start + 1)
                                  : std::string();
    if (length == 0)
      return error(fmt::format("byte 0x{:02x} is no UTF-8 text: is this a YAML file?",
                               static_cast<unsigned char>(text[i])),
                   where);
    if (brackets > bracket_limit)
      return error(fmt::format("more than {} brackets are left open", bracket_limit), where);
    if (text[i] == '[' || text[i] == '{') ++brackets;
    if ((text[i] == ']' || text[i] == '}') && brackets > 0) --brackets;
    if (text[i] == '\n') {
      ++line;
      line_start = i + 1;
    }
    i += length;
  }
  return std::nullopt;
}

// Parses `text` into `state`; the root node, or `absent` for an empty text. Refusals lie in
// state.error.
std::size_t parse_into(State& state, std::string_view text, const Place& fixed) {
  Builder builder(state, fixed);
  const auto malformed = [&](const YAML::Mark& mark, const std::string& what) {
    const Place at = !fixed.set.empty() ? fixed
                     : mark.line < 0    ? Place{}
                                        : Place{mark.line + 1, mark.column + 1, {}};
    state.refuse(at, "malformed YAML: " + what);
  };
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return absent;
    const std::size_t root = builder.root();
    const std::size_t count = state.nodes.size();
    if (!state.error && parser.HandleNextDocument(builder) && state.nodes.size() > count)
      state.refuse(state.nodes[count].place, "a second YAML document; one is read");
    return root;
  } catch (const YAML::DeepRecursion& deep) {
    malformed(deep.mark, fmt::format("nested deeper than {} levels", depth_limit));
  } catch (const YAML::Exception& exception) {
    malformed(exception.mark, exception.msg);
  } catch (const std::exception& exception) {
    malformed(YAML::Mark::null_mark(), exception.what());
  }
  return absent;
}

}  // namespace

Document::Document(std::unique_ptr<State> state) : state_(std::move(state)) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

Result<Document> Document::open(const std::string& path) {
  RACKTWIN_TRY(const std::string text, read_file(path, size_limit));
  return parse(text, path);
}

Result<Document> Document::parse(std::string_view text, std::string name) {
  if (auto error = unreadable(text, name)) return *std::move(error);
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  state->root = parse_into(*state, text, {});
  if (state->error) return *state->error;
  if (state->root == absent || state->nodes[state->root].kind == Kind::null) {
    state->nodes.push_back(Node{.kind = Kind::mapping, .place = {1, 1, {}}});
    state->root = state->nodes.size() - 1;
  }
  const Node& root = state->nodes[state->root];
  if (root.kind != Kind::mapping)
    return Error{Error::Code::invalid_input,
                 fmt::format("the file needs a mapping (key: value), found {}", found(root)),
                 state->where(root.place)};
  state->nodes[state->root].opened = true;
  return Document(std::move(state));
}

namespace {

struct Assignment {
  std::vector<std::string> path;
  std::string_view value;
};

Result<Assignment> split_assignment(std::string_view assignment) {
  const auto error = [](std::string message) {
    return Error{Error::Code::invalid_input, std::move(message), "--set"};
  };
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos)
    return error(fmt::format("\"{}\" is no KEY=VALUE", assignment));
  Assignment split{.path = {}, .value = assignment.substr(equals + 1)};
  std::string_view rest = assignment.substr(0, equals);
  while (true) {
    const std::size_t dot = rest.find('.');
    if (rest.substr(0, dot).empty())
      return error(fmt::format("\"{}\" has an empty name in its key", assignment));
    split.path.emplace_back(rest.substr(0, dot));
    if (dot == std::string_view::npos) return split;
    rest.remove_prefix(dot + 1);
  }
}

// The place of child `step` of `node` (which is made a list or mapping if it is nothing yet),
// added if it is not there; nullptr when the step leads nowhere.
Child* child_at(State& state, std::size_t node, const std::string& step, const Place& place) {
  const auto index = parse_integer(step);
  Node& parent = state.nodes[node];
  if (parent.kind == Kind::null) parent.kind = index == 0 ? Kind::sequence : Kind::mapping;
  if (parent.kind == Kind::mapping) {
    if (Child* child = state.find(node, step)) return child;
    parent.children.push_back({step, absent, place, false});
    return &parent.children.back();
  }
  if (parent.kind != Kind::sequence || !index) {
    state.refuse(place, fmt::format("\"{}\" leads into {}", step, found(parent)));
    return nullptr;
  }
  const auto count = static_cast<std::int64_t>(parent.children.size());
  if (*index < 0 || *index > count) {
    state.refuse(place, fmt::format("the list has {} entries: an index is from 0 to {}, found {}",
                                    count, count, step));
    return nullptr;
  }
  if (*index == count) parent.children.push_back({{}, absent, place, false});
  return &parent.children[static_cast<std::size_t>(*index)];
}

}  // namespace

Result<Done> Document::set(std::string_view assignment) {
  if (auto error = unreadable(assignment, "--set")) return *std::move(error);
  RACKTWIN_TRY(const Assignment split, split_assignment(assignment));
  State& state = *state_;
  const Place place{0, 0, std::string(assignment.substr(0, assignment.find('=')))};

  std::size_t value = absent;
  if (!split.value.empty() && std::string_view("[{\"'").find(split.value[0]) != std::string::npos) {
    value = parse_into(state, split.value, place);
  } else {
    const bool null = split.value.empty() || split.value == "null" || split.value == "~";
    state.nodes.push_back(Node{.kind = null ? Kind::null : Kind::scalar,
                               .place = place,
                               .text = std::string(split.value)});
    value = state.nodes.size() - 1;
  }
  std::size_t node = state.root;
  bool shared = false;
  for (std::size_t i = 0; i < split.path.size() && !state.error; ++i) {
    Child* const child = child_at(state, node, split.path[i], place);
    if (!child) break;
    child->place = place;
    if (i + 1 == split.path.size()) {
      child->node = value;
      break;
    }
    if (child->node == absent) {
      child->node = state.nodes.size();
      node = child->node;
      state.nodes.push_back(Node{.kind = Kind::null, .place = place});
      continue;
    }
    // A value that an alias refers to as well is copied first: only this use of it changes.
    shared = shared || state.nodes[child->node].shared;
    node = shared ? state.nodes.size() : child->node;
    if (shared) {
      Node copy = state.nodes[child->node];
      child->node = node;
      state.nodes.push_back(std::move(copy));
    }
  }
  if (state.error) return *state.error;
  return Done{};
}

Section Document::top() {
  return {state_.get(), state_->root};
}

Result<Done> Document::finish() {
  if (state_->error) return *state_->error;
  // Nodes lie in file order, and a mapping before its children: the first stranger found is
  // the first in the file, save for values given by --set, which come last.
  for (const Node& node : state_->nodes) {
    if (!node.opened) continue;
    std::vector<std::string> known = node.asked;
    const Child* stranger = nullptr;
    for (const Child& child : node.children) {
      if (child.used)
        known.push_back(child.key);
      else if (!stranger)
        stranger = &child;
    }
    if (!stranger) continue;
    std::sort(known.begin(), known.end());
    return Error{Error::Code::invalid_input, unknown_name("key", stranger->key, known),
                 state_->where(stranger->place)};
  }
  return Done{};
}

}  // namespace racktwin::yaml
