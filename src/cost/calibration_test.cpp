#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/file.hpp"
#include "cost/step_model.hpp"

namespace racktwin::cost {
namespace {

TEST(Calibration, the_built_in_one_has_a_source_for_every_figure_and_a_general_entry_per_kind) {
  const Result<Calibration> read = load_calibration("datasheet");
  ASSERT_TRUE(read.ok()) << read.error().text();
  const Calibration& calibration = read.value();
  EXPECT_EQ(calibration.name, "datasheet");
  std::set<OperatorKind> general;
  for (const Calibration::Entry& entry : calibration.entries) {
    EXPECT_FALSE(entry.source.empty());
    EXPECT_EQ(entry.origin, Origin::assumed);
    EXPECT_GT(entry.memory, 0);
    EXPECT_LE(entry.memory, 1);
    if (entry.gpus.empty() && !entry.format && !entry.collective) general.insert(entry.kind);
  }
  EXPECT_EQ(general.size(), 6u);
}

class CalibrationFile : public testing::Test {
 protected:
  std::string refusal(const std::string& text) {
    EXPECT_TRUE(write_file(path_, text).ok());
    const Result<Calibration> read = load_calibration(path_);
    std::filesystem::remove(path_);
    return read.ok() ? "accepted" : read.error().text();
  }
  std::string path_ = (std::filesystem::temp_directory_path() /
                       ("calibration_test." + std::to_string(::getpid()) + ".yaml"))
                          .string();
};

constexpr const char* gemm =
    "entries:\n  - kind: gemm\n    compute: 0.5\n    origin: assumed\n    source: a guess\n";

TEST_F(CalibrationFile, is_refused_with_the_place_and_what_is_missing) {
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  const std::string kinds = refusal(gemm);
  EXPECT_TRUE(has(kinds, "no entry without conditions for kind attention_prefill")) << kinds;
  const std::string source = refusal("entries:\n  - kind: gemm\n    compute: 0.5\n");
  EXPECT_TRUE(has(source, ":2:") && has(source, "without `origin`")) << source;
  const std::string above =
      refusal("entries:\n  - kind: gemm\n    compute: 1.5\n    origin: assumed\n    source: x\n");
  EXPECT_TRUE(has(above, ":3:")) << above;
  const std::string unknown = refusal("entries:\n  - kind: gem\n");
  EXPECT_TRUE(has(unknown, "gemm")) << unknown;
  const std::string misplaced = refusal(
      "entries:\n  - kind: gemm\n    collective: send\n    origin: assumed\n    source: x\n");
  EXPECT_TRUE(has(misplaced, "kind collective only")) << misplaced;
}

TEST(Calibration, an_unknown_name_is_refused_with_the_nearest) {
  const Result<Calibration> read = load_calibration("datashet");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("datasheet"), std::string::npos) << read.error().message;
}

}  // namespace
}  // namespace racktwin::cost
