#include "catalog/catalog.hpp"
namespace racktwin::catalog {
Result<Model> import_hf_config(std::string_view, std::string_view, std::string name) {
  return Error{Error::Code::unsupported, "not read yet", std::move(name)};
}
}  // namespace racktwin::catalog
