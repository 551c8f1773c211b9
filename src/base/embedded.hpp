// The files of data/, scenarios/ and the report's web bundle, inside the binary, so that it
// runs from any folder. Generated at build time by cmake/embed.cmake.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace racktwin {

struct EmbeddedFile {
  std::string_view path;  // as in the repository: "data/gpus/GB300.yaml"
  std::string_view content;
};

std::span<const EmbeddedFile> embedded_files();  // sorted by path
std::optional<std::string_view> embedded_file(std::string_view path);

}  // namespace racktwin
