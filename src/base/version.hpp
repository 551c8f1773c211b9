// The one place of the version number: CMake reads it from here.
#pragma once

namespace racktwin {
inline constexpr const char* version = "0.1.0";
}
