#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "tidy/rules.hpp"

namespace racktwin::tidy {

Findings dead_headers(const std::vector<File>& files) {
  std::map<std::string, const File*> headers;  // by the name that includes use
  for (const File& file : files)
    if (file.is_header() && file.path.starts_with("src/")) headers[file.path.substr(4)] = &file;
  std::set<std::string> used;
  for (const File& file : files) {
    if (!file.is_source()) continue;
    for (const std::string_view line : lines_of(file.code)) {
      if (!line.starts_with("#include \"")) continue;
      const std::string name(line.substr(10, line.find('"', 10) - 10));
      const auto found = headers.find(name);
      if (found != headers.end() && found->second != &file) used.insert(name);
    }
  }
  Findings findings;
  for (const auto& [name, file] : headers)
    if (!used.contains(name)) findings.push_back({file->path, 0, "nobody includes this header"});
  return findings;
}

Findings module_table(const std::vector<File>& files) {
  Findings findings;
  const auto cmake = std::find_if(files.begin(), files.end(),
                                  [](const File& file) { return file.path == "CMakeLists.txt"; });
  if (cmake == files.end()) return {{"CMakeLists.txt", 0, "is missing"}};
  int number = 0, modules = 0;
  for (const std::string_view line : lines_of(cmake->text)) {
    ++number;
    if (!line.starts_with("racktwin_module(")) continue;
    ++modules;
    const auto words = words_of(line.substr(0, std::min(line.find(" LINK"), line.find(')'))));
    const std::string name(words.at(1).text);
    const auto row = floors().find(name);
    for (std::size_t i = 2; i < words.size(); ++i) {
      const std::string used(words[i].text);
      if (used == "USES") continue;
      if (row == floors().end() || !row->second.contains(used))
        findings.push_back({cmake->path, number,
                            fmt::format("{} may not use {}: it is not below it", name, used)});
    }
  }
  if (modules == 0) findings.push_back({cmake->path, 0, "declares no module"});
  return findings;
}

namespace {

// `text` with YAML comments and the insides of quoted strings as spaces.
std::string plain_yaml(std::string_view text) {
  std::string out(text);
  char quote = 0;
  bool comment = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool begins_word =
        i == 0 || std::string_view(" \n{[,:").find(text[i - 1]) != std::string_view::npos;
    if (c == '\n') {
      comment = false;
    } else if (comment) {
      out[i] = ' ';
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        out[i] = ' ';
    } else if ((c == '"' || c == '\'') && begins_word) {
      quote = c;
    } else if (c == '#' && begins_word) {
      comment = true;
      out[i] = ' ';
    }
  }
  return out;
}

// The innermost { } around `place`; empty when there is none.
std::string_view flow_mapping(std::string_view yaml, std::size_t place) {
  int depth = 0;
  for (std::size_t i = place; i-- > 0;) {
    if (yaml[i] == '}') ++depth;
    if (yaml[i] != '{' || --depth >= 0) continue;
    const std::size_t end = yaml.find('}', place);
    return yaml.substr(i, end == std::string_view::npos ? end : end - i + 1);
  }
  return {};
}

std::size_t indent_of(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" -");
  return first == std::string_view::npos ? 1000 : first;  // an empty line ends nothing
}

// The lines around line `index` that are indented as far, or further: its mapping and below.
std::string block_mapping(const std::vector<std::string_view>& lines, std::size_t index) {
  const std::size_t indent = indent_of(lines[index]);
  const auto dashed = [&](std::size_t i) { return lines[i].find_first_not_of(' ') < indent; };
  std::size_t first = index, last = index;
  while (!dashed(first) && first > 0 && indent_of(lines[first - 1]) >= indent) --first;
  while (last + 1 < lines.size() && indent_of(lines[last + 1]) >= indent && !dashed(last + 1))
    ++last;
  std::string out;
  for (std::size_t i = first; i <= last; ++i) out += std::string(lines[i]) + "\n";
  return out;
}

bool names_source(std::string_view mapping) {
  const auto has = [&](const char* text) { return mapping.find(text) != std::string_view::npos; };
  return has("source:") || has("sources:") || (has("origin: assumed") && has("note:"));
}

}  // namespace

Findings figures_without_source(const File& file) {
  Findings findings;
  if (!file.path.starts_with("data/")) return findings;
  if (file.has_extension(".csv")) {
    if (!file.text.starts_with("# ") || file.text.find("source") == std::string::npos)
      findings.push_back({file.path, 1, "a table begins with a comment that names its source"});
    return findings;
  }
  if (!file.has_extension(".yaml")) return findings;
  const std::string yaml = plain_yaml(file.text);
  if (yaml.find("source") == std::string::npos)
    findings.push_back({file.path, 0, "names no source"});
  const auto lines = lines_of(yaml);
  for (const Word& word : words_of(yaml)) {
    if (word.text != "value" || yaml[word.offset + 5] != ':') continue;
    const int line = line_at(yaml, word.offset);
    const std::string_view flow = flow_mapping(yaml, word.offset);
    const bool named = flow.empty()
                           ? names_source(block_mapping(lines, static_cast<std::size_t>(line - 1)))
                           : names_source(flow);
    if (!named) findings.push_back({file.path, line, "a figure without source"});
  }
  return findings;
}

namespace {

// A heading as its link writes it: "Bad input, and limits" -> "bad-input-and-limits".
std::string slug_of(std::string_view heading) {
  std::string slug;
  for (const char c : heading.substr(heading.find_first_not_of("# "))) {
    if (c == ' ' || c == '-')
      slug += '-';
    else if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80))
      slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return slug;
}

bool has_heading(const std::vector<File>& files, const std::string& path, std::string_view slug) {
  const auto file =
      std::find_if(files.begin(), files.end(), [&](const File& each) { return each.path == path; });
  if (file == files.end()) return false;
  const auto lines = lines_of(file->text);
  return std::any_of(lines.begin(), lines.end(), [&](std::string_view line) {
    return line.starts_with("#") && line.find_first_not_of("# ") != std::string_view::npos &&
           slug_of(line) == slug;
  });
}

// `target` as seen from the folder of `from`, without "." and ".."; empty when it leaves the tree.
std::string resolved(std::string_view from, std::string_view target) {
  std::vector<std::string_view> parts;
  const auto walk = [&](std::string_view path) {
    while (!path.empty()) {
      const std::size_t end = path.find('/');
      const std::string_view part = path.substr(0, end);
      path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
      if (part.empty() || part == ".") continue;
      if (part != "..")
        parts.push_back(part);
      else if (parts.empty())
        return false;
      else
        parts.pop_back();
    }
    return true;
  };
  const std::size_t slash = from.rfind('/');
  if (!walk(slash == std::string_view::npos ? "" : from.substr(0, slash)) || !walk(target))
    return "";
  std::string path;
  for (const std::string_view part : parts) path += (path.empty() ? "" : "/") + std::string(part);
  return path;
}

}  // namespace

Findings broken_links(const File& file, const std::vector<File>& files,
                      const std::set<std::string>& paths) {
  Findings findings;
  if (!file.has_extension(".md")) return findings;
  int number = 0;
  bool fenced = false;
  for (const std::string_view line : lines_of(file.text)) {
    ++number;
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced) continue;
    for (std::size_t at = line.find("]("); at != std::string_view::npos;
         at = line.find("](", at + 1)) {
      const std::size_t end = line.find(')', at);
      if (end == std::string_view::npos) break;
      const std::string_view link = line.substr(at + 2, end - at - 2);
      if (link.find("://") != std::string_view::npos || link.starts_with("mailto:")) continue;
      const std::size_t hash = link.find('#');
      const std::string target =
          link.starts_with('#') ? file.path : resolved(file.path, link.substr(0, hash));
      const bool reached =
          paths.contains(target) &&
          (hash == std::string_view::npos || has_heading(files, target, link.substr(hash + 1)));
      if (!reached) findings.push_back({file.path, number, fmt::format("broken link: {}", link)});
    }
  }
  return findings;
}

Findings missing_tests(const File& file, const std::vector<File>& files) {
  Findings findings;
  if (file.path != "docs/invariants.md") return findings;
  std::set<std::string> defined;
  for (const File& source : files) {
    if (!source.is_test()) continue;
    const auto words = words_of(source.code);
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      const std::string_view macro = words[i].text;
      if (macro == "TEST" || macro == "TEST_P" || macro == "TEST_F" || macro == "RC_GTEST_PROP")
        defined.insert(fmt::format("{}.{}", words[i + 1].text, words[i + 2].text));
    }
  }
  int number = 0;
  for (const std::string_view line : lines_of(file.text)) {
    ++number;
    for (std::size_t begin = line.find('`'); begin != std::string_view::npos;) {
      const std::size_t end = line.find('`', begin + 1);
      if (end == std::string_view::npos) break;
      const std::string name(line.substr(begin + 1, end - begin - 1));
      const bool is_test = std::isupper(static_cast<unsigned char>(name[0])) != 0 &&
                           name.find('.') != std::string::npos;
      if (is_test && !defined.contains(name))
        findings.push_back({file.path, number, name + " is no test"});
      begin = line.find('`', end + 1);
    }
  }
  return findings;
}

Findings untested_scenarios(const std::set<std::string>& paths) {
  Findings findings;
  for (const std::string& path : paths) {
    if (!path.starts_with("scenarios/") || !path.ends_with(".yaml")) continue;
    const std::string name = path.substr(10, path.size() - 15);
    if (!paths.contains("scenarios/" + name + ".expected") &&
        !paths.contains("test/golden/" + name + ".expected"))
      findings.push_back({path, 0, "has no golden output " + name + ".expected"});
  }
  return findings;
}

}  // namespace racktwin::tidy
