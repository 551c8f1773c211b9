#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "tidy/rules.hpp"

namespace racktwin::tidy {
namespace {

// A word, where it may stand (prefixes of paths), and what to do elsewhere.
struct Ban {
  // Anywhere; before "("; as <word>; after "std::" or as <word>.
  enum class When { always, called, included, standard };
  std::string word;
  When when;
  std::vector<std::string> allowed;
  std::string instead;
};

// A library's exceptions end in the file that wraps it; cli.cpp is the last resort.
std::vector<std::string> wrapping_files() {
  return {"src/base/yaml.cpp", "src/catalog/hf_json.cpp", "src/cli/cli.cpp",
          "src/cli/command_line.cpp"};
}

// Hash tables that are looked up and never walked.
std::vector<std::string> unordered_files() {
  return {};
}

// Headers that keep a bare number for a reason: numbers on their way out, in the unit in which
// they are printed; hot loops behind an interface in quantities.
const std::set<std::string>& bare_numbers() {
  static const std::set<std::string> files = {"src/sim/result.hpp", "src/report/numbers.hpp",
                                              "src/cost/walk.hpp", "src/workload/samplers.hpp"};
  return files;
}

std::vector<Ban> make_bans() {
  using enum Ban::When;
  std::vector<Ban> bans;
  const auto add = [&](std::vector<std::string> words, Ban::When when,
                       const std::vector<std::string>& allowed, const std::string& instead) {
    for (std::string& word : words) bans.push_back({std::move(word), when, allowed, instead});
  };
  const std::string check = "src/base/check.hpp", cli = "src/cli/", replay = "fuzz/replay.cpp",
                    swarm = "test/swarm/main.cpp";
  add({"cout", "cerr", "clog"}, standard, {cli}, "the library never prints; return text");
  add({"printf", "puts", "putchar"}, called, {cli, swarm}, "the library never prints; return text");
  add({"fprintf", "fputs"}, called, {cli, check, replay, swarm},
      "the library never prints; return text");
  add({"exit", "_exit", "quick_exit", "terminate"}, called, {cli}, "only cli/ ends the program");
  add({"abort"}, called, {check, "src/workload/trace_test_tools.hpp"}, "RACKTWIN_CHECK");
  add({"assert"}, called, {}, "RACKTWIN_CHECK, which stays on in release builds");
  add({"throw"}, always, {}, "Result for bad input, RACKTWIN_CHECK for a broken invariant");
  add({"catch"}, always, wrapping_files(),
      "catch a library's exceptions in the file that wraps it");
  add({"rand", "srand", "drand48"}, called, {}, "Rng with a named stream");
  add({"random"}, included, {}, "Rng: the distributions of <random> differ between libraries");
  add({"random_device", "mt19937", "mt19937_64"}, standard, {}, "Rng with a named stream");
  add({"chrono"}, standard, {cli, "bench/"}, "no wall clock in a result: Instant and Seconds");
  add({"gettimeofday", "clock_gettime"}, called, {cli, "bench/"}, "no wall clock in a result");
  add({"getenv", "setenv"}, called, {cli, "test/"}, "flags and scenarios are the input");
  add({"sleep", "usleep", "sleep_for", "sleep_until"}, called, {}, "nothing here waits");
  add({"unordered_map", "unordered_set", "unordered_multimap", "unordered_multiset"}, always,
      unordered_files(), "no order from hashes: std::map, or a vector by Id");
  add({"shared_ptr"}, standard, {"src/base/yaml"}, "a value, or std::unique_ptr");
  add({"mutex", "atomic", "thread", "jthread"}, standard, {cli}, "one run is one thread");
  add({"goto"}, always, {}, "a function");
  add({"setlocale", "locale"}, standard, {}, "no locale in a result");
  return bans;
}

bool applies(Ban::When when, std::string_view code, const Word& word) {
  const std::string_view before = code.substr(0, word.offset);
  const std::string_view rest = code.substr(word.offset + word.text.size());
  const bool included = before.ends_with('<') && rest.starts_with('>');
  switch (when) {
    case Ban::When::always:
      return true;
    // x.exit() is a member of ours, not the function.
    case Ban::When::called:
      return rest.starts_with('(') && !before.ends_with('.');
    case Ban::When::included:
      return included;
    case Ban::When::standard:
      return included || before.ends_with("std::");
  }
  return true;
}

}  // namespace

Findings banned_words(const File& file) {
  static const std::vector<Ban> bans = make_bans();
  Findings findings;
  if (!file.is_source()) return findings;
  const std::string_view code = file.code;
  for (const Word& word : words_of(code)) {
    for (const Ban& ban : bans) {
      if (word.text != ban.word) continue;
      if (!applies(ban.when, code, word)) continue;
      if (std::any_of(ban.allowed.begin(), ban.allowed.end(),
                      [&](const std::string& prefix) { return file.path.starts_with(prefix); }))
        continue;
      findings.push_back({file.path, line_at(code, word.offset),
                          fmt::format("\"{}\": {}", ban.word, ban.instead)});
    }
  }
  return findings;
}

namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// "#12", "issue 12", "PR 12" at `place`: a number of our own tracker. A literal is none, and after
// a project's name ("vLLM issue 12") it is the source of something.
bool is_issue_number(std::string_view line, std::size_t place) {
  const std::string_view before = line.substr(0, place), rest = line.substr(place);
  if (!before.empty() && !before.ends_with(' ') && !before.ends_with('(')) return false;
  if (std::count(before.begin(), before.end(), '"') % 2 == 1) return false;
  const auto words = words_of(before);
  if (!words.empty() && before.ends_with(' ') &&
      before.find_last_not_of(' ') + 1 == words.back().offset + words.back().text.size() &&
      std::isupper(static_cast<unsigned char>(words.back().text.front())) != 0)
    return false;
  for (const std::string_view word : {"issue ", "issue #", "Issue ", "PR ", "PR #", "#"}) {
    if (!rest.starts_with(word)) continue;
    const std::string_view number = rest.substr(word.size());
    const auto digits = static_cast<std::size_t>(
        std::find_if_not(number.begin(), number.end(), is_digit) - number.begin());
    const char after = digits < number.size() ? number[digits] : '\n';
    const bool ends = std::isalnum(static_cast<unsigned char>(after)) == 0 && after != '-';
    if (digits > 0 && digits <= 5 && ends) return true;
  }
  return false;
}

}  // namespace

Findings banned_phrases(const File& file) {
  Findings findings;
  const bool words_of_ours = !file.path.starts_with("data/");  // which quotes titles of sources
  int number = 0;
  for (const std::string_view line : lines_of(file.text)) {
    ++number;
    const auto wrong = [&](std::string what) {
      findings.push_back({file.path, number, std::move(what)});
    };
    for (const Word& word : words_of(line))
      for (const std::string_view note : {"TO"
                                          "DO",
                                          "FIX"
                                          "ME",
                                          "XX"
                                          "X",
                                          "HA"
                                          "CK"})
        if (word.text == note) wrong(fmt::format("\"{}\": do it, or file an issue", note));
    for (const std::string_view place : {"/wo"
                                         "rk/",
                                         "/ho"
                                         "me/",
                                         "/ro"
                                         "ot/"})
      if (line.find(place) != std::string_view::npos)
        wrong(fmt::format("\"{}\" is a path of somebody's machine", place));
    for (std::size_t i = 0; words_of_ours && i < line.size(); ++i)
      if (is_issue_number(line, i)) {
        wrong("an issue number: say what it is about");
        break;
      }
  }
  return findings;
}

Findings units_in_names(const File& file) {
  static const std::set<std::string_view> numbers = {
      "double", "float", "int", "long", "int32_t", "uint32_t", "int64_t", "uint64_t", "size_t"};
  static const std::set<std::string_view> units = {
      "ns",     "us",   "ms",    "s",       "sec",    "secs", "seconds", "minutes", "hours",
      "b",      "kb",   "mb",    "gb",      "tb",     "kib",  "mib",     "gib",     "bytes",
      "gbps",   "tbps", "usd",   "dollars", "cents",  "w",    "kw",      "mw",      "watts",
      "joules", "kwh",  "flops", "tflops",  "pflops", "hz",   "mhz",     "ghz"};
  Findings findings;
  if (!file.is_header() || !file.path.starts_with("src/") || bare_numbers().contains(file.path))
    return findings;
  const auto words = words_of(file.code);
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!numbers.contains(words[i - 1].text)) continue;
    const std::size_t gap_begin = words[i - 1].offset + words[i - 1].text.size();
    const std::string_view gap =
        std::string_view(file.code).substr(gap_begin, words[i].offset - gap_begin);
    if (gap.find_first_not_of(" &*") != std::string_view::npos) continue;
    std::string_view name = words[i].text;
    while (name.ends_with('_')) name.remove_suffix(1);
    const std::size_t last = name.rfind('_');
    if (last == std::string_view::npos || !units.contains(name.substr(last + 1))) continue;
    // Ticks of the clock are exact, and counted.
    if (words[i - 1].text == "int64_t" && name.ends_with("_ns")) continue;
    findings.push_back({file.path, line_at(file.code, words[i].offset),
                        fmt::format("\"{}\" is a bare number with a unit in its name: make it a "
                                    "Quantity",
                                    words[i].text)});
  }
  return findings;
}

}  // namespace racktwin::tidy
