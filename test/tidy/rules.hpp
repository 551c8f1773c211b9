// The rules of the gate. Each is a pure function of files that gives what is wrong in them, so
// that it can be shown, by example, to find what it is there for (rules_test.cpp).
#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tidy/tree.hpp"

namespace racktwin::tidy {

struct Finding {
  std::string path;
  int line = 0;  // from 1; 0 = the file as a whole
  std::string what;
  friend auto operator<=>(const Finding&, const Finding&) = default;
};
using Findings = std::vector<Finding>;

// --- structure.cpp: one file and its includes, its size, its text -------------------------
// Includes point down the table of floors; libraries with heavy headers stay out of ours.
Findings includes(const File&);
// A first line that says what the header is, `#pragma once`, and no `using namespace`.
Findings header_form(const File&);

inline constexpr int line_limit = 100, function_limit = 70, file_limit = 500, header_limit = 150;
// Files and functions that were over a limit when the rule came: they may only shrink.
// Keys: "src/x/y.cpp" and "src/x/y.cpp:function".
using Ratchet = std::map<std::string, int>;
Findings sizes(const File&, const Ratchet&);
Findings stale_ratchet(const std::vector<File>&, const Ratchet&);

struct Function {
  std::string name;
  int line = 0, lines = 0;
};
std::vector<Function> functions_of(std::string_view code);

// Stray tabs, trailing spaces, carriage returns, a missing last line break.
Findings plain_text(const File&);

// --- words.cpp: what may not be said ------------------------------------------------------
// Calls and headers that only certain files may use: printing, exits, exceptions, clocks, ...
Findings banned_words(const File&);
// Notes to oneself, issue numbers, paths of somebody's machine.
Findings banned_phrases(const File&);
// A bare number whose name ends in a unit, in a header: it should be a Quantity.
Findings units_in_names(const File&);

// --- whole.cpp: files beside one another --------------------------------------------------
Findings dead_headers(const std::vector<File>&);
// The modules of CMakeLists.txt use no more than the table of floors allows.
Findings module_table(const std::vector<File>&);
// Every figure of data/ names its source, and every file there at least one.
Findings figures_without_source(const File&);
// Relative links of *.md lead to a file or folder of `paths`, and to a heading where they say so.
Findings broken_links(const File&, const std::vector<File>&, const std::set<std::string>& paths);
// Tests that docs/invariants.md names as `Suite.test` and that no source defines.
Findings missing_tests(const File&, const std::vector<File>&);
// Every scenario has a golden output: scenarios/NAME.expected or test/golden/NAME.expected.
Findings untested_scenarios(const std::set<std::string>& paths);

// Module -> the modules it may include, itself left out. DESIGN: floors.
const std::map<std::string, std::set<std::string>>& floors();

}  // namespace racktwin::tidy
