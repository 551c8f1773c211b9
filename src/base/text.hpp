// Quantities and names as people write them: "800 Gb/s", "288 GB", "2.5 PFLOPS", "30 ms".
//
// A number without its unit is refused wherever a unit is due. Units are case-sensitive:
// GB is 10^9 bytes, GiB 2^30 bytes, Gb/s 10^9 bits per second.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace racktwin {

// The amount in base units of `text`, whose unit must be of dimension `dim`. Refused:
// no number, no unit, an unknown unit, a unit of another dimension, NaN or infinity.
Result<double> parse_amount(std::string_view text, Dim dim);

// The shortest "number unit" that parse_amount() reads back to the very same double.
std::string format_amount(double base_units, Dim dim);

template <Dim D>
Result<Quantity<D>> parse_quantity(std::string_view text) {
  RACKTWIN_TRY(const double amount, parse_amount(text, D));
  return Quantity<D>::of_base_units(amount);
}
template <Dim D>
std::string format_quantity(Quantity<D> quantity) {
  return format_amount(quantity.in(Quantity<D>::of_base_units(1)), D);
}

// A finite number that spans the whole text, e.g. "1e3", "-4"; nullopt otherwise.
std::optional<double> parse_number(std::string_view text);
std::optional<std::int64_t> parse_integer(std::string_view text);

// The known name with the fewest edits from `name`, if it is near enough to be a slip.
std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> known);

// `unknown KIND "NAME"; did you mean "X"? (known: ...)`: the one way to refuse a name.
std::string unknown_name(std::string_view kind, std::string_view name,
                         std::span<const std::string> known);

}  // namespace racktwin
