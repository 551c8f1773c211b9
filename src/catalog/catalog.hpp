// The catalogue: every named thing, loaded once, strict. An unknown key, a bare number where
// a unit is due, or a figure without a source is an error with file:line:column.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/origin.hpp"
#include "base/result.hpp"
#include "catalog/engine.hpp"
#include "catalog/hardware.hpp"
#include "catalog/model.hpp"

namespace racktwin::catalog {

// Where one figure comes from, e.g. figures("GB300")[i] = {"hbm_bandwidth", "8 TB/s", ...}.
struct Figure {
  std::string key, value;
  Origin origin = Origin::assumed;
  std::string source;  // address or document
  std::string read;    // date, YYYY-MM
  std::string note;
};

class Catalog {
 public:
  // From the files inside the binary, or from a folder laid out like the repository's data/.
  static Result<Catalog> built_in();
  static Result<Catalog> load(const std::string& directory);

  // Refused with the known names and the nearest one. Names are case-insensitive.
  Result<Gpu> gpu(std::string_view name) const;
  Result<System> system(std::string_view name) const;
  Result<Cluster> cluster(std::string_view name) const;
  Result<Engine> engine(std::string_view name) const;
  // A built-in name, or the path of a Hugging Face config.json or of a folder that holds one
  // (anything that exists or ends in .json); an hf_quant_config.json beside it is read too.
  Result<Model> model(std::string_view name) const;

  std::vector<std::string> gpus() const, systems() const, clusters() const, engines() const,
      models() const;
  std::vector<Figure> figures(std::string_view name) const;  // of any named thing

 private:
  struct Loader;
  // By name in lower case.
  std::map<std::string, Gpu> gpus_;
  std::map<std::string, System> systems_;
  std::map<std::string, Cluster> clusters_;
  std::map<std::string, Engine> engines_;
  std::map<std::string, Model> models_;
  std::map<std::string, std::vector<Figure>> figures_;
};

// Reads a Hugging Face config.json. `quantization` is the text of an hf_quant_config.json
// beside it, or empty. Refused with the reason: an architecture that is not understood, a
// shape that contradicts itself, a required key that is missing.
Result<Model> import_hf_config(std::string_view json, std::string_view quantization,
                               std::string name);

}  // namespace racktwin::catalog
