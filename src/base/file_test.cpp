#include "base/file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace racktwin {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  // Tests run side by side in processes of their own.
  Files()
      : folder_(fs::temp_directory_path() / ("racktwin_file_test." + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

TEST_F(Files, what_is_written_is_read_back_and_nothing_else_is_left) {
  const std::string content("a\0b\n\xff", 5);
  ASSERT_TRUE(write_file(path("deep/er/x.bin"), content).ok());
  EXPECT_EQ(read_file(path("deep/er/x.bin")).value(), content);
  ASSERT_TRUE(write_file(path("deep/er/x.bin"), "new").ok());
  EXPECT_EQ(read_file(path("deep/er/x.bin")).value(), "new");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_ / "deep/er")) ++files;
  EXPECT_EQ(files, 1);
}

TEST_F(Files, a_missing_file_a_directory_and_a_large_one_are_refused) {
  EXPECT_EQ(read_file(path("none")).error().code, Error::Code::not_found);
  ASSERT_TRUE(write_file(path("x"), "12345").ok());
  EXPECT_EQ(read_file(folder_.string()).error().text(),
            folder_.string() + ": is a directory; a file is needed");
  EXPECT_TRUE(read_file(path("x"), 5).ok());
  EXPECT_EQ(read_file(path("x"), 4).error().message, "is larger than the 4 bytes allowed here");
}

TEST_F(Files, a_device_a_pipe_and_a_link_stay_what_they_are) {
  ASSERT_TRUE(write_file("/dev/null", "gone").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  ASSERT_TRUE(write_file(path("target"), "old").ok());
  fs::create_symlink(path("target"), path("link"));
  ASSERT_TRUE(write_file(path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("target")).value(), "new");
}

TEST_F(Files, an_endless_file_is_refused_at_its_limit) {
  EXPECT_FALSE(read_file("/dev/zero", 1 << 20).ok());
}

TEST_F(Files, what_cannot_be_written_leaves_the_old_file_and_no_trace) {
  ASSERT_TRUE(write_file(path("x/y"), "old").ok());
  // A folder stands where the file should go, and a file where a folder should.
  EXPECT_FALSE(write_file(path("x"), "new").ok());
  EXPECT_FALSE(write_file(path("x/y/z"), "new").ok());
  EXPECT_EQ(read_file(path("x/y")).value(), "old");
  EXPECT_FALSE(fs::exists(path("x.partial")));
  EXPECT_EQ(write_file("/proc/none/x", "new").error().code, Error::Code::not_found);
}

}  // namespace
}  // namespace racktwin
