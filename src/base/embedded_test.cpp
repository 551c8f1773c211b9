#include "base/embedded.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file.hpp"

namespace racktwin {
namespace {

TEST(Embedded, files_are_in_strict_order_of_path) {
  const auto files = embedded_files();
  ASSERT_FALSE(files.empty());
  for (std::size_t i = 1; i < files.size(); ++i) EXPECT_LT(files[i - 1].path, files[i].path);
}

TEST(Embedded, every_file_is_found_and_equals_the_one_in_the_tree) {
  for (const EmbeddedFile& file : embedded_files()) {
    const auto found = embedded_file(file.path);
    ASSERT_TRUE(found.has_value()) << file.path;
    EXPECT_EQ(found->data(), file.content.data()) << file.path;
    const auto on_disk = read_file(std::string(RACKTWIN_SOURCE_DIR "/").append(file.path));
    ASSERT_TRUE(on_disk.ok()) << on_disk.error().text();
    EXPECT_EQ(*found, on_disk.value()) << file.path;
  }
}

TEST(Embedded, no_data_or_scenario_file_is_left_out) {
  namespace fs = std::filesystem;
  const fs::path root = RACKTWIN_SOURCE_DIR;
  for (const char* folder : {"data", "scenarios", "web/dist"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (!entry.is_regular_file() || extension == ".md" || extension == ".expected") continue;
      const std::string path = fs::relative(entry.path(), root).generic_string();
      if (path.find("/.") != std::string::npos) continue;
      EXPECT_TRUE(embedded_file(path).has_value()) << path;
    }
  }
}

TEST(Embedded, a_path_that_is_not_there_is_absent) {
  EXPECT_FALSE(embedded_file("").has_value());
  EXPECT_FALSE(embedded_file("data").has_value());
  EXPECT_FALSE(embedded_file("data/no-such-file.yaml").has_value());
  EXPECT_FALSE(embedded_file("\x7f").has_value());
}

}  // namespace
}  // namespace racktwin
