// The parsed document behind yaml::Section and yaml::Document: a table of nodes that refer to
// their children by index. Only the yaml_*.cpp files include this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace racktwin::yaml::detail {

enum class Kind : std::uint8_t { null, scalar, mapping, sequence };

constexpr std::size_t absent = static_cast<std::size_t>(-1);

struct Place {
  int line = 0, column = 0;  // 1-based; 0 = given by --set
  std::string set;           // its key then
};

struct Child {
  std::string key;  // empty in a sequence
  std::size_t node = absent;
  Place place;  // of the key
  bool used = false;
};

struct Node {
  Kind kind = Kind::null;
  Place place;
  std::string text;  // of a scalar
  std::vector<Child> children;
  bool complete = true;            // false while its events still come: an alias to it is a cycle
  bool shared = false;             // an alias refers to it too
  bool opened = false;             // somebody read this mapping
  std::vector<std::string> asked;  // keys that were asked for and are not there
};

// What a refusal says was found: the text (shortened), "a list", "a mapping", "nothing".
std::string found(const Node&);

struct State {
  std::string name;
  std::vector<Node> nodes;
  std::size_t root = absent;
  std::optional<Error> error;  // the first refusal; after it nothing is read

  std::string where(const Place& place) const;
  void refuse(const Place& place, std::string message,
              Error::Code code = Error::Code::invalid_input);
  Child* find(std::size_t node, std::string_view key);
  // The child if it is there and nothing was refused yet; notes that it was asked for.
  Child* take(std::size_t node, std::string_view key);
};

}  // namespace racktwin::yaml::detail
