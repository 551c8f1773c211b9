// Numbers as text, one way each, for all outputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "sim/result.hpp"

namespace racktwin::report {

// Rounded to six significant decimal digits.
double rounded(double);

// rounded(), in the fewest characters that read back the same: "0.123457", "1234570".
// `missing` where the value is not finite.
std::string number(double, const char* missing);

// For people: three significant digits, whole numbers in groups from a thousand on:
// "0.0123", "4.56", "789", "12,345". "-" where the value is not finite.
std::string amount(double);
std::string grouped(std::int64_t);            // "1,234,567"
std::string percent(double part);             // 0.1234 -> "12.3 %"
std::string duration(Seconds);                // "12.3 us", "45.6 ms", "7.89 s", "12.3 min"
std::string bound(Seconds);                   // as asked for: "25 ms", "2 s"
std::string data_size(Bytes);                 // "12.3 GB"
std::string hexadecimal(std::uint64_t);       // 16 digits
std::string shape(const cost::Parallelism&);  // "dp8 ep8": the degrees above 1; or "1 GPU"

const char* name(serve::Role);
const char* name(cost::OperatorKind);

// A figure of a distribution in milliseconds; NaN where the distribution is empty.
double in_ms(const sim::Distribution&, double nanoseconds);

// A rate over the run; NaN where the run has no duration.
double rate(const sim::Metrics&, double per_second);

// Requests (tokens) per second that kept their objectives; NaN where none has a bound.
double goodput(const sim::Metrics&, double per_second);

bool has_steady(const sim::Metrics&);  // the window of Metrics::steady is not empty

double busy(const sim::TimeSplit&);  // all but idle

bool has_bound(const sim::SloOutcome&);

}  // namespace racktwin::report
