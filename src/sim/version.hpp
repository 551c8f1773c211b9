// The version that results carry.
#pragma once

#include <string_view>

namespace racktwin::sim {

inline constexpr std::string_view version = "0.1.0";

}  // namespace racktwin::sim
