#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tidy/rules.hpp"

namespace racktwin::tidy {
namespace {

using Modules = std::set<std::string>;

Modules with(Modules modules, const std::vector<std::string>& more) {
  modules.insert(more.begin(), more.end());
  return modules;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// Headers that take seconds to compile or drag a library's types along: *.cpp only.
constexpr std::array<std::string_view, 6> heavy = {
    "nlohmann/json.hpp", "CLI/CLI.hpp", "yaml-cpp/yaml.h", "zstd.h", "zlib.h", "fmt/ranges.h"};

}  // namespace

const std::map<std::string, Modules>& floors() {
  static const std::map<std::string, Modules> table = [] {
    const Modules third = {"base", "numerics", "des", "workload", "catalog"};
    const Modules below_sim = with(third, {"net", "site", "cost", "fleet", "serve", "train"});
    const Modules below_report = with(below_sim, {"sim", "plan", "validate"});
    return std::map<std::string, Modules>{
        {"base", {}},
        {"numerics", {"base"}},
        {"des", {"base"}},
        {"workload", {"base"}},
        {"catalog", {"base", "numerics"}},
        {"net", {"base", "des", "catalog"}},
        {"site", {"base", "catalog"}},
        {"cost", {"base", "numerics", "catalog", "net"}},
        {"fleet", {"base", "des", "catalog", "net", "site"}},
        {"serve", {"base", "des", "workload", "catalog", "net", "cost"}},
        {"train", {"base", "des", "catalog", "net", "cost"}},
        {"sim", below_sim},
        {"plan", with(below_sim, {"sim"})},
        {"validate", with(below_sim, {"sim"})},
        {"report", below_report},
        {"live", with(below_report, {"report"})},
        {"cli", with(below_report, {"report", "live"})},
    };
  }();
  return table;
}

Findings includes(const File& file) {
  Findings findings;
  if (!file.path.starts_with("src/")) return findings;
  const std::string module = file.path.substr(4, file.path.find('/', 4) - 4);
  const auto row = floors().find(module);
  if (row == floors().end())
    return {{file.path, 0, fmt::format("module \"{}\" is not in the table of floors", module)}};
  int line = 0;
  for (std::string_view text : lines_of(file.code)) {
    ++line;
    if (!text.starts_with("#include ")) continue;
    const std::string name(text.substr(10, text.find_first_of("\">", 10) - 10));
    const auto wrong = [&](std::string what) {
      findings.push_back({file.path, line, std::move(what)});
    };
    if (text[9] == '<') {
      if (file.is_header() && std::find(heavy.begin(), heavy.end(), name) != heavy.end())
        wrong(fmt::format("<{}> is heavy: include it in one .cpp", name));
      continue;
    }
    const std::string target = name.substr(0, name.find('/'));
    if (target == name || target == "." || target == "..")
      wrong(fmt::format("\"{}\": includes are written as \"module/header.hpp\"", name));
    else if (target != module && !row->second.contains(target))
      wrong(fmt::format("{} may not include {}: it is not below it", module, target));
  }
  return findings;
}

Findings header_form(const File& file) {
  Findings findings;
  if (!file.is_header()) return findings;
  if (!file.text.starts_with("// "))
    findings.push_back({file.path, 1, "the first line of a header says what the header is"});
  if (file.code.find("#pragma once") == std::string::npos)
    findings.push_back({file.path, 0, "#pragma once is missing"});
  const std::size_t place = file.code.find("using namespace");
  if (place != std::string::npos)
    findings.push_back({file.path, line_at(file.code, place), "using namespace in a header"});
  return findings;
}

namespace {

// What a `{` opens, judged by the text since the last `;`, `{` or `}` outside of functions.
enum class Block { scope, function, initialiser };

bool has_word(std::string_view text, std::string_view wanted) {
  const auto words = words_of(text);
  return std::any_of(words.begin(), words.end(),
                     [&](const Word& word) { return word.text == wanted; });
}

bool assigns(std::string_view head) {  // an '=' outside of parentheses
  int depth = 0;
  for (const char c : head) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == '=' && depth == 0) return true;
  }
  return false;
}

Block kind_of(std::string_view head) {
  if (has_word(head, "namespace") || has_word(head, "extern")) return Block::scope;
  const bool is_template = head.starts_with("template");
  if (assigns(head) && !is_template && !has_word(head, "operator")) return Block::initialiser;
  if (head.find('(') != std::string_view::npos) return Block::function;
  for (const char* word : {"class", "struct", "union", "enum"})
    if (has_word(head, word)) return Block::scope;
  return Block::initialiser;
}

// The last word before the first parenthesis; TEST(A, b) keeps what is in it.
std::string name_in(std::string_view head) {
  const std::size_t open = head.find('(');
  const auto words = words_of(head.substr(0, open));
  std::string name = words.empty() ? "" : std::string(words.back().text);
  if (!name.starts_with("TEST")) return name;
  const std::size_t close = head.find(')', open);
  return name + std::string(head.substr(open, close - open + 1));
}

std::string without_directives(std::string_view code) {
  std::string out(code);
  bool goes_on = false;
  std::size_t place = 0;
  for (const std::string_view line : lines_of(code)) {
    if (goes_on || line.starts_with('#')) {
      goes_on = line.ends_with('\\');
      std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(place), line.size(), ' ');
    }
    place += line.size() + 1;
  }
  return out;
}

}  // namespace

std::vector<Function> functions_of(std::string_view text) {
  const std::string code = without_directives(text);
  std::vector<Function> functions;
  std::size_t head_begin = 0, inside = 0;  // inside: braces open in a function or initialiser
  Function current;
  Block block = Block::scope;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (inside > 0) {
      if (c == '{') ++inside;
      if (c != '}' || --inside > 0) continue;
      if (block == Block::function) {
        current.lines = line_at(code, i) - current.line + 1;
        functions.push_back(current);
      }
      head_begin = i + 1;
    } else if (c == '{') {
      const std::string_view head =
          trimmed(std::string_view(code).substr(head_begin, i - head_begin));
      // The brace before was a member initialiser, a_{a}, not the body: the function goes on.
      const bool goes_on =
          (head.empty() || head.starts_with(',')) && !functions.empty() && block == Block::function;
      block = goes_on ? Block::function : kind_of(head);
      if (goes_on) {
        current = functions.back();
        functions.pop_back();
      } else if (block == Block::function) {
        current = {name_in(head),
                   line_at(code, static_cast<std::size_t>(head.data() - code.data())), 0};
      }
      if (block != Block::scope) inside = 1;
      head_begin = i + 1;
    } else if (c == ';' || c == '}') {
      head_begin = i + 1;
      block = Block::scope;
    }
  }
  return functions;
}

Findings sizes(const File& file, const Ratchet& ratchet) {
  Findings findings;
  if (!file.is_source()) return findings;
  const auto limit_of = [&](const std::string& key, int limit) {
    const auto found = ratchet.find(key);
    return found == ratchet.end() ? limit : found->second;
  };
  const auto lines = lines_of(file.text);
  const int count = static_cast<int>(lines.size());
  const int limit = limit_of(file.path, file.is_header() ? header_limit : file_limit);
  if (count > limit)
    findings.push_back({file.path, 0, fmt::format("{} lines; the limit is {}", count, limit)});
  bool raw = false;  // inside R"( )": text of another language, which has its own lines
  for (int i = 0; i < count; ++i) {
    const std::string_view line = lines[static_cast<std::size_t>(i)];
    const std::size_t open = line.rfind("R\"");
    if (open != std::string_view::npos) raw = true;
    if (raw &&
        line.find(")\"", open == std::string_view::npos ? 0 : open) == std::string_view::npos)
      continue;
    if (raw) {
      raw = false;
      continue;
    }
    const auto width = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not the rest of a UTF-8 letter
    });
    if (width > line_limit)
      findings.push_back(
          {file.path, i + 1, fmt::format("{} columns; the limit is {}", width, line_limit)});
  }
  for (const Function& function : functions_of(file.code)) {
    const int most = limit_of(file.path + ":" + function.name, function_limit);
    if (function.lines > most)
      findings.push_back(
          {file.path, function.line,
           fmt::format("{} has {} lines; the limit is {}", function.name, function.lines, most)});
  }
  return findings;
}

Findings stale_ratchet(const std::vector<File>& files, const Ratchet& ratchet) {
  std::map<std::string, int> now;
  for (const File& file : files) {
    if (!file.is_source()) continue;
    now[file.path] = static_cast<int>(lines_of(file.text).size());
    for (const Function& function : functions_of(file.code)) {
      int& most = now[file.path + ":" + function.name];
      most = std::max(most, function.lines);
    }
  }
  Findings findings;
  for (const auto& [key, limit] : ratchet) {
    const int lines = now.contains(key) ? now[key] : 0;
    if (lines < limit)
      findings.push_back(
          {key, 0, fmt::format("has shrunk to {} lines: lower its ratchet of {}", lines, limit)});
  }
  return findings;
}

Findings plain_text(const File& file) {
  Findings findings;
  int number = 0;
  for (const std::string_view line : lines_of(file.text)) {
    ++number;
    const auto wrong = [&](const char* what) { findings.push_back({file.path, number, what}); };
    if (line.find('\t') != std::string_view::npos && !file.has_extension(".csv")) wrong("a tab");
    if (line.find('\r') != std::string_view::npos) wrong("a carriage return");
    if (line.ends_with(' ')) wrong("a space at the end of the line");
  }
  if (!file.text.empty() && !file.text.ends_with('\n'))
    findings.push_back({file.path, number, "no line break at the end of the file"});
  return findings;
}

}  // namespace racktwin::tidy
