// Client mixes of data/workloads/, read from the binary.
#include <fmt/format.h>

#include <cmath>

#include "base/embedded.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"
#include "workload/generator.hpp"

namespace racktwin::workload {
namespace {

constexpr std::string_view folder = "data/workloads/", suffix = ".yaml";

// "value, weight, value, weight, ...": uniform from a value up to the next.
void read_table(yaml::Section& section, std::string_view key, Lengths& lengths) {
  std::vector<double> numbers;
  section.field(key, numbers, yaml::not_negative);
  lengths = Lengths{.kind = Lengths::Kind::empirical, .min = 1, .smooth = true};
  if (numbers.size() < 2 || numbers.size() % 2 != 0) {
    section.fail(key, "is no list of pairs (length, weight)");
    return;
  }
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    if (numbers[i] > 1e9 || numbers[i] != std::floor(numbers[i])) {
      section.fail(key, fmt::format("the length {} is no whole number up to 1e9", numbers[i]));
      return;
    }
    lengths.table.emplace_back(static_cast<std::int64_t>(numbers[i]), numbers[i + 1]);
  }
  const auto sound = check(lengths, key);
  if (!sound.ok()) section.fail(key, sound.error().message);
}

Client read_client(yaml::Section& section, Seconds window) {
  Client client;
  client.window = window;
  section.field("name", client.name);
  section.field("share", client.share, yaml::not_negative);
  int kind = 0;
  section.choice("gaps", kind, {"poisson", "gamma", "weibull"});
  client.kind = static_cast<Arrivals::Kind>(kind);
  section.field("cv", client.cv, yaml::Range{.low = 0, .high = 1000});
  std::vector<double> rates;
  section.field("rates", rates, yaml::not_negative);
  for (const double rate : rates) client.windows.push_back({rate, client.kind, client.cv});
  read_table(section, "isl", client.isl);
  read_table(section, "osl", client.osl);
  return client;
}

}  // namespace

std::vector<std::string> mix_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files())
    if (file.path.starts_with(folder) && file.path.ends_with(suffix))
      names.emplace_back(
          file.path.substr(folder.size(), file.path.size() - folder.size() - suffix.size()));
  return names;
}

Result<OpenLoop> load_mix(std::string_view name) {
  const std::string path = fmt::format("{}{}{}", folder, name, suffix);
  const std::optional<std::string_view> text = embedded_file(path);
  if (!text)
    return Error{Error::Code::not_found, unknown_name("client mix", name, mix_names()), ""};
  RACKTWIN_TRY(yaml::Document document, yaml::Document::parse(*text, path));
  yaml::Section top = document.top();
  OpenLoop mix;
  std::string source, licence, note;
  top.field("source", source);
  top.field("licence", licence);
  top.field("note", note);
  if (source.empty()) top.fail("source", "a mix names the source of its figures");
  top.field("rate", mix.rate, yaml::positive);
  Seconds window = 10 * unit::minute;
  top.field("window", window, yaml::positive);
  top.field("swing", mix.diurnal.swing, yaml::fraction);
  top.field("peak", mix.diurnal.peak);
  for (yaml::Section& section : top.list("clients"))
    mix.clients.push_back(read_client(section, window));
  RACKTWIN_TRY_DONE(document.finish());
  if (const auto sound = check(Load{mix}); !sound.ok())
    return Error{sound.error().code, sound.error().text(), path};
  return mix;
}

}  // namespace racktwin::workload
