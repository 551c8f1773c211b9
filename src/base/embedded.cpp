#include "base/embedded.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.hpp"

namespace {
struct Row {
  const char* path;
  std::uint64_t path_length;
  const char* content;
  std::uint64_t content_length;
};
}  // namespace

// Laid down by the assembly that cmake/embed.cmake generates.
extern "C" {
extern const Row racktwin_embedded_table[];
extern const std::uint64_t racktwin_embedded_count;
}

namespace racktwin {

std::span<const EmbeddedFile> embedded_files() {
  static const std::vector<EmbeddedFile> files = [] {
    std::vector<EmbeddedFile> rows;
    for (const Row& row : std::span(racktwin_embedded_table, racktwin_embedded_count))
      rows.push_back({{row.path, row.path_length}, {row.content, row.content_length}});
    RACKTWIN_CHECK(std::is_sorted(rows.begin(), rows.end(),
                                  [](const auto& a, const auto& b) { return a.path < b.path; }));
    return rows;
  }();
  return files;
}

std::optional<std::string_view> embedded_file(std::string_view path) {
  const std::span<const EmbeddedFile> files = embedded_files();
  const auto found = std::lower_bound(
      files.begin(), files.end(), path,
      [](const EmbeddedFile& file, std::string_view wanted) { return file.path < wanted; });
  if (found == files.end() || found->path != path) return std::nullopt;
  return found->content;
}

}  // namespace racktwin
