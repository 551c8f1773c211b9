// The gate: every rule over every file of the project. What the rules are for, and that they
// find it, is in rules_test.cpp.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "tidy/rules.hpp"

namespace racktwin::tidy {
namespace {

// Over a limit, and may only shrink: see sizes() in rules.hpp. Lower a number when it can be.
const Ratchet& ratchet() {
  static const Ratchet entries = {{"src/serve/replica.hpp", 247}};
  return entries;
}

const std::vector<File>& tree() {
  static const std::vector<File> files = read_tree(RACKTWIN_SOURCE_DIR);
  return files;
}

// Files and their folders, and what the tree leaves out (*.expected).
const std::set<std::string>& paths() {
  static const std::set<std::string> all = [] {
    namespace fs = std::filesystem;
    std::set<std::string> found;
    for (const File& file : tree()) {
      for (fs::path path = file.path; !path.empty(); path = path.parent_path())
        found.insert(path.generic_string());
    }
    for (const char* folder : {"scenarios", "test/golden", "docs"}) {
      const fs::path root = RACKTWIN_SOURCE_DIR;
      if (!fs::exists(root / folder)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root / folder))
        found.insert(fs::relative(entry.path(), root).generic_string());
    }
    found.insert({"dev", ".ci/run", "scenarios", "data"});
    return found;
  }();
  return all;
}

void expect_none(const Findings& findings) {
  for (const Finding& finding : findings)
    ADD_FAILURE() << finding.path << (finding.line > 0 ? fmt::format(":{}", finding.line) : "")
                  << ": " << finding.what;
}

void expect_none_of(const std::function<Findings(const File&)>& rule) {
  ASSERT_GT(tree().size(), 50u);
  for (const File& file : tree()) expect_none(rule(file));
}

TEST(Tidy, includes_point_down) {
  expect_none_of(includes);
}
TEST(Tidy, modules_link_what_is_below_them) {
  expect_none(module_table(tree()));
}
TEST(Tidy, headers_say_what_they_are) {
  expect_none_of(header_form);
}
TEST(Tidy, lines_functions_and_files_keep_their_limits) {
  expect_none_of([](const File& file) { return sizes(file, ratchet()); });
}
TEST(Tidy, the_ratchet_only_turns_one_way) {
  expect_none(stale_ratchet(tree(), ratchet()));
}
TEST(Tidy, text_is_plain) {
  expect_none_of(plain_text);
}
TEST(Tidy, banned_words_stay_where_they_are_allowed) {
  expect_none_of(banned_words);
}
TEST(Tidy, no_notes_to_oneself_issue_numbers_or_private_paths) {
  expect_none_of(banned_phrases);
}
TEST(Tidy, numbers_with_units_are_quantities) {
  expect_none_of(units_in_names);
}
TEST(Tidy, every_header_is_used) {
  expect_none(dead_headers(tree()));
}
TEST(Tidy, every_figure_has_a_source) {
  expect_none_of(figures_without_source);
}
TEST(Tidy, links_of_documents_lead_somewhere) {
  expect_none_of([](const File& file) { return broken_links(file, tree(), paths()); });
}
TEST(Tidy, tests_that_the_invariants_name_exist) {
  expect_none_of([](const File& file) { return missing_tests(file, tree()); });
}
TEST(Tidy, every_scenario_has_a_golden_output) {
  expect_none(untested_scenarios(paths()));
}

}  // namespace
}  // namespace racktwin::tidy
