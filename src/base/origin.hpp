// Where a number comes from. Every prediction rests on figures of these five kinds, and a
// report says how much of it rests on each.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace racktwin {

enum class Origin : std::uint8_t {
  measured,      // somebody ran it, and this is the point
  interpolated,  // between measured points of the same table
  transferred,   // from the nearest measured shape, format or GPU, by a stated rule
  datasheet,     // published by the vendor
  assumed,       // neither; the reason is given beside it
};
inline constexpr int origins = 5;

constexpr std::string_view name(Origin origin) {
  constexpr std::array<std::string_view, origins> names = {"measured", "interpolated",
                                                           "transferred", "datasheet", "assumed"};
  return names[static_cast<std::size_t>(origin)];
}

}  // namespace racktwin
