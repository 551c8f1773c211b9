// JSON as text, for the writers that need no tree.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace racktwin::report {

// Quoted and escaped. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(std::string_view);

// "[1,2.5,null]": number() of each.
std::string json_numbers(std::span<const double>);

}  // namespace racktwin::report
