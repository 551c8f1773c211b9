// The two ends of a scenario file: describe(archive, value) names every field once, and the
// archive either reads it (Reader, strict) or writes it (Emitter). Only scenario.cpp and its
// neighbours include this.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/yaml.hpp"
#include "sim/scenario_check.hpp"

namespace racktwin::sim::detail {

using Names = std::vector<std::string>;

class Reader {
 public:
  static constexpr bool reads = true;
  Reader(yaml::Section at, Names* slos) : at_(at), slos_(slos) {}

  // A field that keeps its value when the key is absent.
  template <class T, class... Range>
  void field(std::string_view key, T& value, Range... range) {
    at_.field(key, value, range...);
  }
  template <class E>
  void choice(std::string_view key, E& value, const Names& names) {
    int index = static_cast<int>(value);
    at_.choice(key, index, names);
    value = static_cast<E>(index);
  }
  template <class T>
  void group(std::string_view key, T&& value) {
    Reader inner(at_.section(key), slos_);
    describe(inner, value);
  }
  // Given, a list replaces the default as a whole.
  template <class T>
  void list(std::string_view key, std::vector<T>& values) {
    const std::vector<yaml::Section> sections = at_.list(key);
    if (!at_.has(key)) return;
    values.clear();
    for (const yaml::Section& section : sections) {
      T value;
      Reader inner(section, slos_);
      describe(inner, value);
      values.push_back(std::move(value));
    }
  }
  // A rule between fields, of scenario_check.hpp: refuses the document where it is broken.
  template <class... T>
  void check(const T&... values) {
    detail::check(at_, values...);
  }
  bool has(std::string_view key) const { return at_.has(key); }
  void require(std::string_view key) { at_.require(key); }
  void fail(std::string_view key, std::string message) { at_.fail(key, std::move(message)); }
  Names& slos() { return *slos_; }

 private:
  yaml::Section at_;
  Names* slos_;  // names of the objectives, once they are read
};

class Emitter {
 public:
  static constexpr bool reads = false;
  explicit Emitter(yaml::Writer& writer, Names* slos) : to_(writer), slos_(slos) {}

  template <class T, class... Range>
  void field(std::string_view key, const T& value, Range...) {
    to_.field(key, value);
  }
  template <class E>
  void choice(std::string_view key, E value, const Names& names) {
    to_.field(key, names[static_cast<std::size_t>(value)]);
  }
  template <class T>
  void group(std::string_view key, T&& value) {
    to_.open(key);
    describe(*this, value);
    to_.close();
  }
  template <class T>
  void list(std::string_view key, std::vector<T>& values) {
    to_.open_list(key);
    for (T& value : values) {
      to_.item();
      describe(*this, value);
      to_.close_item();
    }
    to_.close();
  }
  template <class... T>
  void check(const T&...) {}
  bool has(std::string_view) const { return false; }
  void require(std::string_view) {}
  void fail(std::string_view, const std::string&) {}
  Names& slos() { return *slos_; }

 private:
  yaml::Writer& to_;
  Names* slos_;
};

}  // namespace racktwin::sim::detail
