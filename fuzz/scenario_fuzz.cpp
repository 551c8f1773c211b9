// Any text as a scenario: it is refused with a place and a sentence, or it is accepted, and then
// what is written of it reads back as itself.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "sim/scenario.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace racktwin;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto scenario = sim::parse_scenario(text, "fuzz.yaml", {});
  if (!scenario.ok()) {
    RACKTWIN_CHECK(!scenario.error().message.empty() && !scenario.error().where.empty());
    return 0;
  }
  const std::string written = sim::to_yaml(scenario.value());
  const auto back = sim::parse_scenario(written, "written.yaml", {});
  RACKTWIN_CHECK(back.ok() && back.value() == scenario.value());
  RACKTWIN_CHECK(sim::to_yaml(back.value()) == written);
  return 0;
}
