// Must fail on its corpus: a reader with a planted fault. If it ever passes, the replay (or
// libFuzzer) no longer notices a crash, and the other targets prove nothing.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  RACKTWIN_CHECK(!text.starts_with("canary"));
  return 0;
}
