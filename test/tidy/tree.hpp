// The project's text files as the gate reads them: whole, by line, and with what is not code
// blanked out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace racktwin::tidy {

struct File {
  std::string path;  // from the root: "src/des/queue.cpp"
  std::string text;
  // Of C++ sources: `text` with comments, and with the insides of string and character literals,
  // turned into spaces; line breaks stay. Empty for other files.
  std::string code;

  bool has_extension(std::string_view extension) const { return path.ends_with(extension); }
  bool is_header() const { return has_extension(".hpp"); }
  bool is_source() const { return has_extension(".hpp") || has_extension(".cpp"); }
  bool is_test() const { return path.starts_with("test/") || has_extension("_test.cpp"); }
};

File make_file(std::string path, std::string text);

// Every file below `root` that people write: no build folder, no dependencies, no bundle, no
// fuzz corpus, no hidden file. Sorted by path.
std::vector<File> read_tree(const std::string& root);

std::vector<std::string_view> lines_of(std::string_view text);

// `text` with comments and literals blanked, of the same length and lines.
std::string code_of(std::string_view text);

// The identifiers of `code` with their places, in order.
struct Word {
  std::string_view text;
  std::size_t offset = 0;
};
std::vector<Word> words_of(std::string_view code);
int line_at(std::string_view text, std::size_t offset);  // from 1

}  // namespace racktwin::tidy
