// Each rule on what it must find and what it must let pass: a gate that cannot fail is none.
#include "tidy/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace racktwin::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int> lines(const Findings& findings) {
  std::vector<int> out;
  for (const Finding& finding : findings) out.push_back(finding.line);
  return out;
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Code, blanks_comments_and_literals_and_keeps_the_rest_in_place) {
  EXPECT_EQ(code_of("a; // b\nc"), "a;     \nc");
  EXPECT_EQ(code_of("a /* b\n c */ d"), "a     \n      d");
  EXPECT_EQ(code_of("f(\"x // y\\\" z\") + 1"), "f(" + repeated(" ", 12) + ") + 1");
  EXPECT_EQ(code_of("n = 1'000 + '\\'' + b"), "n = 1'000 +      + b");
  EXPECT_EQ(code_of("R\"(a\" // b)\" c"), "R" + repeated(" ", 12) + "c");
  EXPECT_EQ(code_of("#include \"base/x.hpp\""), "#include \"base/x.hpp\"");
}

TEST(Includes, may_only_point_down) {
  const auto check = [](const char* path, const char* text) {
    return lines(includes(make_file(path, text)));
  };
  EXPECT_THAT(check("src/net/a.cpp", "#include \"base/x.hpp\"\n#include \"net/b.hpp\"\n"),
              IsEmpty());
  EXPECT_THAT(check("src/net/a.cpp", "#include <vector>\n\n#include \"cost/x.hpp\"\n"),
              ElementsAre(3));
  EXPECT_THAT(check("src/base/a.hpp", "#include \"des/x.hpp\"\n"), ElementsAre(1));
  EXPECT_THAT(check("src/plan/a.cpp", "#include \"validate/x.hpp\"\n"), ElementsAre(1));
  EXPECT_THAT(check("src/net/a.cpp", "#include \"b.hpp\"\n#include \"../cost/x.hpp\"\n"),
              ElementsAre(1, 2));
  EXPECT_THAT(check("src/misc/a.cpp", ""), ElementsAre(0));
  EXPECT_THAT(check("src/cli/a.hpp", "#include <CLI/CLI.hpp>\n"), ElementsAre(1));
  EXPECT_THAT(check("src/cli/a.cpp", "#include <CLI/CLI.hpp>\n"), IsEmpty());
  EXPECT_THAT(check("bench/a.cpp", "#include \"cli/x.hpp\"\n"), IsEmpty());
}

TEST(Floors, have_no_circle) {
  for (const auto& [module, below] : floors())
    for (const std::string& other : below) {
      ASSERT_TRUE(floors().contains(other)) << other;
      EXPECT_FALSE(floors().at(other).contains(module)) << module << " and " << other;
      for (const std::string& third : floors().at(other)) EXPECT_NE(third, module);
    }
}

TEST(HeaderForm, asks_for_a_first_comment_and_pragma_once_and_no_using_namespace) {
  EXPECT_THAT(header_form(make_file("src/a/b.hpp", "// A thing.\n#pragma once\n")), IsEmpty());
  EXPECT_EQ(header_form(make_file("src/a/b.hpp", "#pragma once\n")).size(), 1u);
  EXPECT_EQ(header_form(make_file("src/a/b.hpp", "// A thing.\n")).size(), 1u);
  EXPECT_THAT(
      lines(header_form(make_file("src/a/b.hpp", "// A.\n#pragma once\nusing namespace std;\n"))),
      ElementsAre(3));
}

TEST(Functions, are_found_with_their_length_in_whatever_form) {
  const auto found = functions_of(
      "#define X(a) \\\n  { a }\n"
      "namespace n {\n"
      "int table[] = {1, 2};\n"
      "struct S : Base<int> {\n"
      "  S(int a) : a_{a}, b_(2) {\n    f();\n  }\n"
      "  bool operator==(const S&) const = default;\n"
      "  int get() const { return a_; }\n"
      "};\n"
      "template <class T = int>\nauto f(T x) -> int {\n  if (x) {\n    g([&] { h(); });\n  }\n}\n"
      "TEST(A, b) {\n}\n"
      "}\n");
  std::vector<std::pair<std::string, int>> got;
  for (const Function& function : found) got.emplace_back(function.name, function.lines);
  EXPECT_THAT(got, ElementsAre(std::pair("S", 3), std::pair("get", 1), std::pair("f", 6),
                               std::pair("TEST(A, b)", 2)));
}

TEST(Sizes, holds_lines_functions_and_files_to_their_limits) {
  const auto count = [](const char* path, const std::string& text, const Ratchet& ratchet = {}) {
    return sizes(make_file(path, text), ratchet).size();
  };
  EXPECT_EQ(count("src/a/b.cpp", repeated("x", 100) + "\n"), 0u);
  EXPECT_EQ(count("src/a/b.cpp", repeated("x", 101) + "\n"), 1u);
  EXPECT_EQ(count("src/a/b.cpp", "// " + repeated("\xC3\xA4", 97) + "\n"),
            0u);  // letters, not bytes
  EXPECT_EQ(count("src/a/b.cpp", "f(R\"(a\n" + repeated("x", 120) + "\n)\");\n"), 0u);
  EXPECT_EQ(count("src/a/b.cpp", "f(R\"(a)\");\n" + repeated("x", 120) + "\n"), 1u);
  EXPECT_EQ(count("src/a/b.cpp", repeated("\n", 500)), 0u);
  EXPECT_EQ(count("src/a/b.cpp", repeated("\n", 501)), 1u);
  EXPECT_EQ(count("src/a/b.hpp", repeated("\n", 151)), 1u);
  const std::string long_function = "void f() {\n" + repeated("  g();\n", 69) + "}\n";
  EXPECT_EQ(count("src/a/b.cpp", long_function), 1u);
  EXPECT_EQ(count("src/a/b.cpp", long_function, {{"src/a/b.cpp:f", 71}}), 0u);
  EXPECT_EQ(count("src/a/b.hpp", repeated("\n", 160), {{"src/a/b.hpp", 160}}), 0u);
}

TEST(Ratchet, must_follow_what_shrinks) {
  const std::vector<File> files = {make_file("src/a/b.hpp", repeated("\n", 160))};
  EXPECT_THAT(stale_ratchet(files, {{"src/a/b.hpp", 160}}), IsEmpty());
  EXPECT_EQ(stale_ratchet(files, {{"src/a/b.hpp", 170}}).size(), 1u);
  EXPECT_EQ(stale_ratchet(files, {{"src/a/gone.hpp", 170}}).size(), 1u);
}

TEST(PlainText, refuses_tabs_trailing_spaces_and_a_missing_line_break) {
  EXPECT_THAT(plain_text(make_file("a.md", "a\nb\n")), IsEmpty());
  EXPECT_THAT(lines(plain_text(make_file("a.md", "a\tb\nc \nd\r\ne"))), ElementsAre(1, 2, 3, 4));
}

TEST(BannedWords, are_found_in_code_and_not_in_comments_literals_or_where_allowed) {
  const auto check = [](const char* path, const char* text) {
    return lines(banned_words(make_file(path, text)));
  };
  EXPECT_THAT(check("src/net/a.cpp", "// throw\nf(\"throw\");\nint throw_away;\n"), IsEmpty());
  EXPECT_THAT(check("src/net/a.cpp", "throw 1;\n std::cout << 1;\n exit(1);\n std::abort();\n"),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(check("src/net/a.cpp", "#include <random>\n#include <chrono>\n"), ElementsAre(1, 2));
  EXPECT_THAT(check("src/net/a.cpp", "int random = queue.exit(3);\nText thread = locale;\n"),
              IsEmpty());
  EXPECT_THAT(check("src/net/a.cpp", "#include <thread>\nstd::mutex m;\n"), ElementsAre(1, 2));
  EXPECT_THAT(check("src/net/a.cpp", "std::unordered_map<int, int> m;\n"), ElementsAre(1));
  EXPECT_THAT(check("src/net/a.cpp", "try { f(); } catch (...) {}\n getenv(\"A\");\n"),
              ElementsAre(1, 2));
  EXPECT_THAT(check("src/base/yaml.cpp", "try { f(); } catch (...) {}\n"), IsEmpty());
  EXPECT_THAT(check("src/base/check.hpp", "std::abort();\n"), IsEmpty());
  EXPECT_THAT(check("src/cli/main.cpp", "std::cout << 1; exit(0);\n"), IsEmpty());
}

TEST(BannedPhrases, are_notes_numbers_of_a_tracker_and_private_paths) {
  const auto check = [](const char* path, const std::string& text) {
    return lines(banned_phrases(make_file(path, text)));
  };
  EXPECT_THAT(check("src/a/b.cpp",
                    "// TO"
                    "DO: more\n"),
              ElementsAre(1));
  EXPECT_THAT(check("src/a/b.cpp",
                    "// see #"
                    "12\n// (issue "
                    "7)\n// PR "
                    "34, 35\n"),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(check("docs/a.md",
                    "in /ho"
                    "me/me/x\n"),
              ElementsAre(1));
  EXPECT_THAT(check("src/a/b.cpp", "// 12 of #, issue of 7, a#1, #abc, &#39; #include\n"),
              IsEmpty());
  EXPECT_THAT(check("docs/a.md", "# 1. Title\n[x](#12-steps) #123456\n"), IsEmpty());
}

TEST(UnitsInNames, are_found_on_bare_numbers_of_headers) {
  const auto check = [](const char* path, const char* text) {
    return lines(units_in_names(make_file(path, text)));
  };
  EXPECT_THAT(check("src/a/b.hpp", "void f(double wait_ms);\nstd::int64_t size_gb = 0;\n"),
              ElementsAre(1, 2));
  EXPECT_THAT(check("src/a/b.hpp", "double price_usd() const;\nint left_ns_ = 0;\n"),
              ElementsAre(1, 2));
  EXPECT_THAT(
      check("src/a/b.hpp", "Seconds wait_ms;\ndouble ms;\nint tokens;\ndouble f(int bytes);\n"),
      IsEmpty());
  EXPECT_THAT(check("src/a/b.cpp", "double wait_ms;\n"), IsEmpty());
  EXPECT_THAT(check("src/a/b.hpp", "std::int64_t start_ns;\n"), IsEmpty());  // ticks
  EXPECT_THAT(check("src/a/b.hpp", "double start_ns;\n"), ElementsAre(1));
}

TEST(DeadHeaders, are_those_that_no_other_file_includes) {
  std::vector<File> files = {make_file("src/a/b.hpp", "#include \"a/b.hpp\"\n"),
                             make_file("src/a/c.cpp", "// #include \"a/b.hpp\"\n")};
  EXPECT_EQ(dead_headers(files).size(), 1u);
  files.push_back(make_file("src/a/d.cpp", "#include \"a/b.hpp\"\n"));
  EXPECT_THAT(dead_headers(files), IsEmpty());
}

TEST(ModuleTable, is_held_against_the_floors) {
  const auto check = [](const char* text) {
    return lines(module_table({make_file("CMakeLists.txt", text)}));
  };
  EXPECT_THAT(check("racktwin_module(des USES base LINK fmt::fmt)\n"), IsEmpty());
  EXPECT_THAT(check("racktwin_module(base LINK fmt::fmt)\nracktwin_module(des USES base cost)\n"),
              ElementsAre(2));
  EXPECT_THAT(check("project(x)\n"), ElementsAre(0));
}

TEST(Figures, need_a_source_beside_them) {
  const auto check = [](const char* text) {
    return lines(figures_without_source(make_file("data/gpus/x.yaml", text)));
  };
  EXPECT_THAT(check("a: {value: 1 GB, source: x}\nb: {value: 2 GB,\n  note: \"source: none\"}\n"),
              ElementsAre(2));
  EXPECT_THAT(check("source: x\nb: {value: 2 GB, origin: assumed, note: because}\n"), IsEmpty());
  EXPECT_THAT(check("a:\n  value: 1\n  source: x\nb:\n  value: 2\n  # source: y\n"),
              ElementsAre(5));
  EXPECT_THAT(check("a:\n  - value: 1\n    source: x\n  - value: 2\n"), ElementsAre(4));
  EXPECT_THAT(check("a: 1 # no source\n"), ElementsAre(0));
  EXPECT_EQ(figures_without_source(make_file("data/x.csv", "a,b\n")).size(), 1u);
  EXPECT_THAT(figures_without_source(make_file("data/x.csv", "# source: y\na,b\n")), IsEmpty());
}

TEST(Links, must_lead_to_a_file_and_a_heading) {
  const std::vector<File> files = {
      make_file("docs/a.md", "# One thing, and another\n"),
      make_file("docs/models/b.md",
                "[x](../a.md)\n[x](../a.md#one-thing-and-another)\n[x](a.md)\n[x](../a.md#two)\n"
                "[x](https://nowhere) [y](../../dev)\n```\n[x](gone)\n```\n[x](../../../out)\n")};
  const std::set<std::string> paths = {"docs/a.md", "docs/models/b.md", "dev"};
  EXPECT_THAT(lines(broken_links(files[1], files, paths)), ElementsAre(3, 4, 9));
}

TEST(MissingTests, are_those_that_the_invariants_name_and_nobody_wrote) {
  const File document = make_file("docs/invariants.md", "| `A.b`, `A.c` |\n| `D.e` `x.y` |\n");
  const std::vector<File> files = {
      make_file("src/a/b_test.cpp", "TEST(A, b) {}\nTEST_P(D, e) {}\n"),
      make_file("src/a/c.cpp", "TEST(A, c) {}\n")};
  EXPECT_THAT(lines(missing_tests(document, files)), ElementsAre(1));
}

TEST(Scenarios, need_a_golden_output) {
  EXPECT_THAT(untested_scenarios({"scenarios/a.yaml", "scenarios/a.expected"}), IsEmpty());
  EXPECT_THAT(untested_scenarios({"scenarios/a.yaml", "test/golden/a.expected"}), IsEmpty());
  EXPECT_EQ(untested_scenarios({"scenarios/a.yaml", "scenarios/b.expected"}).size(), 1u);
}

}  // namespace
}  // namespace racktwin::tidy
