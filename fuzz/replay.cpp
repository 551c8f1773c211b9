// The stand-in for libFuzzer where only the corpus is to be replayed: runs the target on every
// file of the folders given, whole, then cut short and with bytes changed at fixed places.
// Usage: NAME_fuzz FOLDER_OR_FILE...
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/rng.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

// A copy of exact size on the heap, so that the sanitizer sees a read one past the end.
void feed(const std::string& input) {
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void feed_mutations(const std::string& input, std::uint64_t index) {
  constexpr int rounds = 16;
  racktwin::Rng rng(1, "fuzz replay", index);
  for (int i = 0; i < rounds && !input.empty(); ++i) {
    feed(input.substr(0, rng.below(input.size())));
    std::string changed = input;
    for (int change = 0; change <= i / 4; ++change)
      changed[rng.below(changed.size())] = static_cast<char>(rng.below(256));
    feed(changed);
  }
}

std::vector<fs::path> files_under(const char* place) {
  if (fs::is_regular_file(place)) return {place};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(place))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int count, char** arguments) {
  std::uint64_t fed = 0;
  feed("");
  for (int i = 1; i < count; ++i) {
    for (const fs::path& path : files_under(arguments[i])) {
      const auto content = racktwin::read_file(path.string());
      if (!content.ok()) {
        std::fprintf(stderr, "%s\n", content.error().text().c_str());
        return 1;
      }
      std::fprintf(stderr, "%s\n", path.c_str());  // the last one printed is the culprit
      feed(content.value());
      feed_mutations(content.value(), fed++);
    }
  }
  std::fprintf(stderr, "%llu files replayed\n", static_cast<unsigned long long>(fed));
  return fed > 0 ? 0 : 1;  // an empty corpus tests nothing
}
