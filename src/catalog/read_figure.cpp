#include <fmt/format.h>

#include "base/text.hpp"
#include "catalog/read.hpp"

namespace racktwin::catalog {

FigureReader::FigureReader(yaml::Section top, std::vector<Figure>& figures) : figures_(figures) {
  yaml::Section sources = top.section("sources");
  for (const std::string& id : sources.keys()) {
    yaml::Section entry = sources.section(id);
    Source source;
    for (const auto& [key, value] : {std::pair{"title", &source.title},
                                     {"address", &source.address},
                                     {"read", &source.read}}) {
      entry.require(key);
      entry.field(key, *value);
    }
    sources_[id] = std::move(source);
  }
}

void FigureReader::note(yaml::Section figure, std::string_view key, std::string value) {
  Figure row{.key = prefix + std::string(key), .value = std::move(value)};
  int origin = static_cast<int>(Origin::datasheet);
  std::vector<std::string> names;
  for (int i = 0; i < origins; ++i) names.emplace_back(name(static_cast<Origin>(i)));
  figure.require("origin");
  figure.choice("origin", origin, names);
  row.origin = static_cast<Origin>(origin);
  std::string id;
  figure.field("source", id);
  figure.field("note", row.note);
  if (!id.empty()) {
    const auto known = sources_.find(id);
    if (known == sources_.end()) {
      std::vector<std::string> ids;
      for (const auto& [entry, source] : sources_) ids.push_back(entry);
      return figure.fail("source", unknown_name("source", id, ids));
    }
    row.source = known->second.title + ", " + known->second.address;
    row.read = known->second.read;
  } else if (row.origin != Origin::assumed) {
    return figure.fail({}, fmt::format("{} has no source: a figure needs one, or is `assumed` "
                                       "with a note that says why",
                                       key));
  } else if (row.note.empty()) {
    return figure.fail({}, fmt::format("{} is assumed: a note must say why", key));
  }
  figures_.push_back(std::move(row));
}

}  // namespace racktwin::catalog
