// twin_swarm --seeds A..B: random worlds under all laws. Prints the worlds in which one is
// broken; exit 1 if there are any.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "world.hpp"

int main(int count, char** words) {
  unsigned long long first = 1, last = 1000;
  if (count != 1 && (count != 3 || std::strcmp(words[1], "--seeds") != 0 ||
                     std::sscanf(words[2], "%llu..%llu", &first, &last) != 2)) {
    std::fprintf(stderr, "usage: twin_swarm --seeds FIRST..LAST\n");
    return 2;
  }
  unsigned long long bad = 0;
  for (unsigned long long seed = first; seed <= last; ++seed) {
    const std::string text = racktwin::swarm::trouble(seed);
    if (text.empty()) continue;
    ++bad;
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }
  std::printf("%llu of %llu worlds break a law\n", bad, last - first + 1);
  return bad == 0 ? 0 : 1;
}
