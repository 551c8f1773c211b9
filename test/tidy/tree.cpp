#include "tidy/tree.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/check.hpp"
#include "base/file.hpp"

namespace racktwin::tidy {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> folders_left_out = {"build",        "out",    "dist",
                                                              "node_modules", "corpus", "Testing"};
constexpr std::array<std::string_view, 16> extensions = {
    ".cpp", ".hpp", ".md",   ".txt",  ".cmake", ".yaml",   ".yml", ".csv",
    ".js",  ".css", ".html", ".json", ".sh",    ".svelte", ".svg", ""};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Where the literal that opens at `begin` with `quote` ends: one past its last character.
std::size_t end_of_quoted(std::string_view text, std::size_t begin, char quote) {
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == quote || text[i] == '\n')
      return i + 1;
  }
  return text.size();
}

// R"tag( ... )tag", `begin` at the quote.
std::size_t end_of_raw(std::string_view text, std::size_t begin) {
  const std::size_t open = text.find('(', begin);
  if (open == std::string_view::npos) return text.size();
  const std::string close = ")" + std::string(text.substr(begin + 1, open - begin - 1)) + "\"";
  const std::size_t end = text.find(close, open);
  return end == std::string_view::npos ? text.size() : end + close.size();
}

// One past the comment or literal that begins at `i`; `i` itself when none does.
std::size_t end_of_blank(std::string_view text, std::size_t i) {
  const auto or_end = [&](std::size_t end, std::size_t more) {
    return end == std::string_view::npos ? text.size() : end + more;
  };
  if (text.substr(i, 2) == "//") return or_end(text.find('\n', i), 0);
  if (text.substr(i, 2) == "/*") return or_end(text.find("*/", i + 2), 2);
  if (text[i] == '"')
    return i > 0 && text[i - 1] == 'R' ? end_of_raw(text, i) : end_of_quoted(text, i, '"');
  // A quote between digits separates thousands: 1'000.
  if (text[i] == '\'' && (i == 0 || !is_word(text[i - 1]))) return end_of_quoted(text, i, '\'');
  return i;
}

}  // namespace

std::string code_of(std::string_view text) {
  std::string code(text);
  for (std::size_t i = 0; i < text.size();) {
    // The name in an include is part of the directive, not a literal.
    if (text[i] == '"' && text.substr(0, i).ends_with("#include ")) {
      i = end_of_quoted(text, i, '"');
      continue;
    }
    const std::size_t end = end_of_blank(text, i);
    for (std::size_t k = i; k < end; ++k)
      if (text[k] != '\n') code[k] = ' ';
    i = std::max(end, i + 1);
  }
  return code;
}

File make_file(std::string path, std::string text) {
  File file{std::move(path), std::move(text), {}};
  if (file.is_source()) file.code = code_of(file.text);
  return file;
}

std::vector<File> read_tree(const std::string& root) {
  std::vector<File> files;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::end(entry); ++entry) {
    const std::string name = entry->path().filename().string();
    const bool left_out =
        name.starts_with('.') ||
        std::find(folders_left_out.begin(), folders_left_out.end(), name) != folders_left_out.end();
    if (entry->is_directory()) {
      if (left_out) entry.disable_recursion_pending();
      continue;
    }
    const std::string extension = entry->path().extension().string();
    const bool text =
        std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
    if (!entry->is_regular_file() || left_out || !text || name == "package-lock.json") continue;
    auto content = read_file(entry->path().string());
    RACKTWIN_CHECK(content.ok());
    files.push_back(
        make_file(fs::relative(entry->path(), root).generic_string(), std::move(content).value()));
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::vector<Word> words_of(std::string_view code) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < code.size();) {
    std::size_t end = i;
    while (end < code.size() && is_word(code[end])) ++end;
    if (end > i) words.push_back({code.substr(i, end - i), i});
    i = std::max(end, i + 1);
  }
  return words;
}

int line_at(std::string_view text, std::size_t offset) {
  return 1 + static_cast<int>(std::count(text.begin(),
                                         text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

}  // namespace racktwin::tidy
