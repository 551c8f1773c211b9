// Readers of the catalogue's files, one per kind of thing: used by catalog.cpp only.
//
// A figure is a mapping {value, origin, source, note}: `source` names an entry of the file's
// `sources` (title, address, read), an assumed figure gives its reason as `note` instead, and
// a figure with neither does not load. A file is read with the errors kept in its document.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/yaml.hpp"
#include "catalog/catalog.hpp"

namespace racktwin::catalog {

class FigureReader {
 public:
  // Reads `sources` of the file; figures that are read are appended to `figures`.
  FigureReader(yaml::Section top, std::vector<Figure>& figures);

  // The figure `key` of `section`, which must be there; the value is read by `T`'s field().
  template <class T>
  void require(yaml::Section section, std::string_view key, T& value, yaml::Range range) {
    section.require(key);
    read(section, key, value, range);
  }
  // The same, where an absent key leaves the value as it is.
  template <class T>
  void read(yaml::Section section, std::string_view key, T& value, yaml::Range range) {
    if (!section.has(key)) return;
    yaml::Section figure = section.section(key);
    figure.require("value");
    figure.field("value", value, range);
    std::string text;
    if constexpr (!std::is_same_v<T, std::vector<double>>) figure.field("value", text);
    note(figure, key, std::move(text));
  }
  // Origin and source of `figure`, under the name `prefix` + `key`.
  void note(yaml::Section figure, std::string_view key, std::string value);
  std::string prefix;

 private:
  struct Source {
    std::string title, address, read;
  };
  std::vector<Figure>& figures_;
  std::map<std::string, Source> sources_;
};

// Each reads the whole file and calls finish(). `figures` receives where the numbers are from.
Result<Gpu> read_gpu(yaml::Document&, std::vector<Figure>& figures);
Result<System> read_system(yaml::Document&, std::vector<Figure>& figures);
Result<Cluster> read_cluster(yaml::Document&, std::vector<Figure>& figures);
Result<Engine> read_engine(yaml::Document&, std::vector<Figure>& figures);

// A model that names a `base` is that one with other formats; `known` finds it, or nullptr.
using ModelLookup = std::function<const Model*(std::string_view name)>;
Result<Model> read_model(yaml::Document&, const ModelLookup& known, std::vector<Figure>& figures);
// The `base` that the file names, if any: bases are read first.
std::string base_of(yaml::Document&);

// What makes a model impossible, in words: a dimension out of bounds, heads that do not
// divide, more active experts than there are, a size beyond a quadrillion parameters.
std::optional<std::string> flaw(const Model&);

}  // namespace racktwin::catalog
