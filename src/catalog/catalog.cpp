#include "catalog/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/embedded.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"
#include "catalog/read.hpp"

namespace racktwin::catalog {
namespace {

namespace fs = std::filesystem;

struct File {
  std::string path;  // as refusals name it
  std::string text;
};

std::string folded(std::string_view name) {
  std::string key(name);
  for (char& c : key)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return key;
}

// Entries of `table` by their own names, in order of key.
template <class Thing>
std::vector<std::string> names_of(const std::map<std::string, Thing>& table) {
  std::vector<std::string> names;
  for (const auto& [key, thing] : table) names.push_back(thing.name);
  return names;
}

template <class Thing>
Result<Thing> find(const std::map<std::string, Thing>& table, std::string_view kind,
                   std::string_view name) {
  const auto found = table.find(folded(name));
  if (found != table.end()) return found->second;
  return Error{Error::Code::not_found, unknown_name(kind, name, names_of(table)), {}};
}

Result<std::vector<File>> files_of(const std::string& folder) {
  std::vector<File> files;
  std::error_code code;
  std::vector<std::string> paths;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
    if (it->path().extension() == ".yaml") paths.push_back(it->path().string());
  if (code && code != std::errc::no_such_file_or_directory)
    return Error{Error::Code::io, "cannot list the folder: " + code.message(), folder};
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    RACKTWIN_TRY(std::string text, read_file(path));
    files.push_back({path, std::move(text)});
  }
  return files;
}

bool is_config_path(std::string_view name) {
  std::error_code code;
  return name.ends_with(".json") || fs::exists(fs::path(name), code);
}

// The hf_quant_config.json that lies beside `config`, or an empty path.
std::string quantization_beside(const fs::path& config) {
  std::string file = config.filename().string();
  const std::string_view tail = "config.json";
  if (!file.ends_with(tail)) return {};
  file.replace(file.size() - tail.size(), tail.size(), "hf_quant_config.json");
  const fs::path beside = config.parent_path() / file;
  std::error_code code;
  return fs::exists(beside, code) ? beside.string() : std::string();
}

Result<Model> model_of_config(std::string_view name) {
  fs::path path(name);
  std::error_code code;
  if (fs::is_directory(path, code)) path /= "config.json";
  RACKTWIN_TRY(const std::string json, read_file(path.string(), std::size_t{64} << 20));
  std::string quantization;
  if (const std::string beside = quantization_beside(path); !beside.empty()) {
    RACKTWIN_TRY(quantization, read_file(beside, std::size_t{64} << 20));
  }
  auto model = import_hf_config(json, quantization, path.string());
  if (!model.ok()) {
    Error error = std::move(model).error();
    error.where = path.string();
    return error;
  }
  return model;
}

}  // namespace

// Fills a Catalog from files; a member so that it reaches the tables.
struct Catalog::Loader {
  Catalog catalog;

  template <class Thing>
  Result<Done> add(std::map<std::string, Thing>& table, Thing thing, std::vector<Figure> figures,
                   const std::string& path) {
    const std::string key = folded(thing.name);
    const std::string stem = fs::path(path).stem().string();
    if (key != folded(stem))
      return Error{Error::Code::invalid_input,
                   fmt::format("the file is named \"{}\", what it holds \"{}\"", stem, thing.name),
                   path};
    catalog.figures_[key] = std::move(figures);
    table.emplace(key, std::move(thing));
    return Done{};
  }

  template <class Thing, class Read>
  Result<Done> load(std::map<std::string, Thing>& table, const std::vector<File>& files,
                    Read read) {
    for (const File& file : files) {
      RACKTWIN_TRY(yaml::Document document, yaml::Document::parse(file.text, file.path));
      std::vector<Figure> figures;
      RACKTWIN_TRY(Thing thing, read(document, figures));
      RACKTWIN_TRY_DONE(add(table, std::move(thing), std::move(figures), file.path));
    }
    return Done{};
  }

  // Models without a base first, then those whose base is there: a chain may be any length.
  Result<Done> load_models(const std::vector<File>& files) {
    struct Waiting {
      yaml::Document document;
      std::string path, base;
    };
    std::vector<Waiting> waiting;
    for (const File& file : files) {
      RACKTWIN_TRY(yaml::Document document, yaml::Document::parse(file.text, file.path));
      std::string base = folded(base_of(document));
      waiting.push_back({std::move(document), file.path, std::move(base)});
    }
    const ModelLookup known = [this](std::string_view name) -> const Model* {
      const auto found = catalog.models_.find(folded(name));
      return found == catalog.models_.end() ? nullptr : &found->second;
    };
    while (!waiting.empty()) {
      const auto ready = std::stable_partition(
          waiting.begin(), waiting.end(),
          [&](const Waiting& model) { return !model.base.empty() && !known(model.base); });
      // None ready: a base that is not there, or a circle. Reading one says which.
      const auto first = ready == waiting.end() ? waiting.begin() : ready;
      for (auto it = first; it != waiting.end(); ++it) {
        std::vector<Figure> figures;
        RACKTWIN_TRY(Model model, read_model(it->document, known, figures));
        RACKTWIN_TRY_DONE(add(catalog.models_, std::move(model), std::move(figures), it->path));
      }
      waiting.erase(first, waiting.end());
    }
    return Done{};
  }

  // `files` gives those of a folder of data/.
  template <class Files>
  Result<Catalog> load_all(Files files) {
    RACKTWIN_TRY(const std::vector<File> gpus, files("gpus"));
    RACKTWIN_TRY_DONE(load(catalog.gpus_, gpus, read_gpu));
    RACKTWIN_TRY(const std::vector<File> systems, files("systems"));
    RACKTWIN_TRY_DONE(load(catalog.systems_, systems, read_system));
    RACKTWIN_TRY(const std::vector<File> clusters, files("clusters"));
    RACKTWIN_TRY_DONE(load(catalog.clusters_, clusters, read_cluster));
    RACKTWIN_TRY(const std::vector<File> engines, files("engines"));
    RACKTWIN_TRY_DONE(load(catalog.engines_, engines, read_engine));
    RACKTWIN_TRY(const std::vector<File> models, files("models"));
    RACKTWIN_TRY_DONE(load_models(models));
    for (const auto& [key, system] : catalog.systems_)
      if (const auto gpu = catalog.gpu(system.gpu); !gpu.ok())
        return Error{Error::Code::invalid_input, gpu.error().message, "system " + system.name};
    for (const auto& [key, cluster] : catalog.clusters_)
      if (const auto system = catalog.system(cluster.system); !system.ok())
        return Error{Error::Code::invalid_input, system.error().message, "cluster " + cluster.name};
    return std::move(catalog);
  }
};

Result<Catalog> Catalog::built_in() {
  return Loader{}.load_all([](std::string_view folder) -> Result<std::vector<File>> {
    std::vector<File> files;
    const std::string prefix = fmt::format("data/{}/", folder);
    for (const EmbeddedFile& file : embedded_files())
      if (file.path.starts_with(prefix) && file.path.ends_with(".yaml"))
        files.push_back({std::string(file.path), std::string(file.content)});
    return files;
  });
}

Result<Catalog> Catalog::load(const std::string& directory) {
  std::error_code code;
  if (!fs::is_directory(directory, code))
    return Error{Error::Code::not_found, "the catalogue's folder is not there", directory};
  return Loader{}.load_all(
      [&](std::string_view folder) { return files_of(directory + "/" + std::string(folder)); });
}

Result<Gpu> Catalog::gpu(std::string_view name) const {
  return find(gpus_, "GPU", name);
}
Result<System> Catalog::system(std::string_view name) const {
  return find(systems_, "system", name);
}
Result<Cluster> Catalog::cluster(std::string_view name) const {
  return find(clusters_, "cluster", name);
}
Result<Engine> Catalog::engine(std::string_view name) const {
  return find(engines_, "engine", name);
}
Result<Model> Catalog::model(std::string_view name) const {
  if (!models_.contains(folded(name)) && is_config_path(name)) return model_of_config(name);
  return find(models_, "model", name);
}

std::vector<std::string> Catalog::gpus() const {
  return names_of(gpus_);
}
std::vector<std::string> Catalog::systems() const {
  return names_of(systems_);
}
std::vector<std::string> Catalog::clusters() const {
  return names_of(clusters_);
}
std::vector<std::string> Catalog::engines() const {
  return names_of(engines_);
}
std::vector<std::string> Catalog::models() const {
  return names_of(models_);
}

std::vector<Figure> Catalog::figures(std::string_view name) const {
  const auto found = figures_.find(folded(name));
  return found == figures_.end() ? std::vector<Figure>{} : found->second;
}

}  // namespace racktwin::catalog
