#include <algorithm>
#include <array>

#include "base/embedded.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"
#include "cost/step_model.hpp"

namespace racktwin::cost {
namespace {

using numerics::Format;

const std::vector<std::string> kinds = {"gemm",        "attention_prefill", "attention_decode",
                                        "expert_gemm", "elementwise",       "collective"};
const std::vector<std::string> collectives = {"all_reduce", "all_gather", "reduce_scatter",
                                              "all_to_all", "send"};

std::vector<std::string> origin_names() {
  std::vector<std::string> names;
  for (int i = 0; i < origins; ++i) names.emplace_back(name(static_cast<Origin>(i)));
  return names;
}

// Every figure says where it comes from.
void read_origin(yaml::Section& section, Origin& origin, std::string& source) {
  int index = -1;
  section.choice("origin", index, origin_names());
  section.field("source", source);
  if (index < 0)
    section.fail("",
                 "a figure without `origin`; one of measured, interpolated, transferred, "
                 "datasheet, assumed");
  else if (source.empty())
    section.fail("", "a figure without `source`; say where it comes from, or why it is assumed");
  else
    origin = static_cast<Origin>(index);
}

constexpr yaml::Range utilisation{.low = 0, .high = 1, .open_low = true};

Calibration::Entry read_entry(yaml::Section& section) {
  Calibration::Entry entry;
  int kind = -1, collective = -1, format = -1;
  section.choice("kind", kind, kinds);
  if (kind < 0) section.fail("", "an entry without `kind`");
  if (kind >= 0) entry.kind = static_cast<OperatorKind>(kind);
  section.field("gpus", entry.gpus);
  section.choice("format", format, numerics::format_names());
  if (format >= 0) entry.format = numerics::all_formats()[static_cast<std::size_t>(format)].format;
  section.choice("collective", collective, collectives);
  if (collective >= 0) {
    entry.collective = static_cast<CollectiveKind>(collective);
    if (entry.kind != OperatorKind::collective)
      section.fail("collective", "`collective` is a condition of entries of kind collective only");
  }
  section.field("compute", entry.compute, utilisation);
  section.field("memory", entry.memory, utilisation);
  section.field("half_rows", entry.half_rows, yaml::not_negative);
  section.field("floor", entry.floor);
  read_origin(section, entry.origin, entry.source);
  return entry;
}

// A figure that stands alone: {value, origin, source}.
template <class Value>
void read_figure(yaml::Section& top, const char* key, Value& value, Origin& origin,
                 yaml::Range range) {
  if (!top.has(key)) return;
  yaml::Section section = top.section(key);
  section.field("value", value, range);
  std::string source;
  read_origin(section, origin, source);
}

Result<Calibration> read(yaml::Document document, std::string_view fallback_name) {
  Calibration calibration;
  calibration.name = fallback_name;
  yaml::Section top = document.top();
  top.field("name", calibration.name);
  Origin unused = Origin::assumed;
  read_figure(top, "expert_skew", calibration.expert_skew, calibration.skew_origin, {.low = 1});
  read_figure(top, "eager_launch", calibration.eager_launch, unused, yaml::not_negative);
  read_figure(top, "step_gap", calibration.step_gap, unused, yaml::not_negative);
  std::array<bool, 6> general{};
  for (yaml::Section& section : top.list("entries")) {
    const Calibration::Entry entry = read_entry(section);
    if (entry.gpus.empty() && !entry.format && !entry.collective)
      general[static_cast<std::size_t>(entry.kind)] = true;
    calibration.entries.push_back(entry);
  }
  for (std::size_t kind = 0; kind < general.size(); ++kind) {
    if (general[kind]) continue;
    top.fail("entries", "no entry without conditions for kind " + kinds[kind] +
                            "; each kind needs one, so that no operator is without a figure");
  }
  RACKTWIN_TRY_DONE(document.finish());
  return calibration;
}

}  // namespace

Result<Calibration> load_calibration(std::string_view name) {
  constexpr std::string_view folder = "data/calibration/", suffix = ".yaml";
  const std::string path = std::string(folder) + std::string(name) + std::string(suffix);
  if (const auto content = embedded_file(path)) {
    RACKTWIN_TRY(yaml::Document document, yaml::Document::parse(*content, path));
    return read(std::move(document), name);
  }
  if (name.find('/') != std::string_view::npos || name.ends_with(suffix)) {
    RACKTWIN_TRY(yaml::Document document, yaml::Document::open(std::string(name)));
    return read(std::move(document), name);
  }
  std::vector<std::string> known;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.starts_with(folder) || !file.path.ends_with(suffix)) continue;
    std::string_view stem = file.path.substr(folder.size());
    stem.remove_suffix(suffix.size());
    known.emplace_back(stem);
  }
  return Error{.code = Error::Code::not_found,
               .message = unknown_name("calibration", name, known) +
                          ", or the path of a file that ends in .yaml"};
}

}  // namespace racktwin::cost
