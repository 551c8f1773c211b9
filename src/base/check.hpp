// Assertions for programmer errors. They stay on in release builds: a model that goes on
// after a broken invariant prints plausible numbers, which is worse than a crash.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace racktwin::detail {
[[noreturn]] inline void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: invariant broken: %s\n", file, line, expression);
  std::abort();
}
}  // namespace racktwin::detail

#define RACKTWIN_CHECK(condition) \
  ((condition) ? void(0) : ::racktwin::detail::check_failed(#condition, __FILE__, __LINE__))

// For checks whose cost shows in the benchmarks: walks over whole data structures.
#ifdef RACKTWIN_VERIFY
#define RACKTWIN_VERIFY_CHECK(condition) RACKTWIN_CHECK(condition)
#else
#define RACKTWIN_VERIFY_CHECK(condition) void(sizeof(condition))
#endif
