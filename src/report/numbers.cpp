#include "report/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "base/check.hpp"
#include "base/text.hpp"

namespace racktwin::report {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Scale {
  double size;
  const char* unit;
};

// In the largest unit that keeps at least one digit before the point.
std::string scaled(double value, std::span<const Scale> scales) {
  if (!std::isfinite(value)) return "-";
  const auto fits = [&](const Scale& scale) { return std::abs(value) >= scale.size; };
  const auto found = std::find_if(scales.begin(), scales.end(), fits);
  const Scale& scale = value == 0 || found == scales.end() ? scales.back() : *found;
  return fmt::format("{} {}", amount(value / scale.size), scale.unit);
}

}  // namespace

double rounded(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  const std::optional<double> back = parse_number(fmt::format("{:.5e}", value));
  RACKTWIN_CHECK(back.has_value());
  return *back;
}

std::string number(double value, const char* missing) {
  if (!std::isfinite(value)) return missing;
  return fmt::format("{}", value == 0 ? 0.0 : rounded(value));  // no "-0"
}

std::string grouped(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const std::size_t sign = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > sign + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string amount(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  if (std::abs(value) >= 1e15) return fmt::format("{:.3g}", value);
  if (std::abs(value) >= 999.5) return grouped(std::llround(value));
  if (std::abs(value) < 1e-4) return fmt::format("{:.2e}", value);
  // %g drops trailing zeros; "#" would keep them, with a bare point after whole numbers.
  const int decimals = std::max(0, 2 - static_cast<int>(std::floor(std::log10(std::abs(value)))));
  return fmt::format("{:.{}f}", value, decimals);
}

std::string percent(double part) {
  if (!std::isfinite(part)) return "-";
  // A share short of all (or more than nothing) is not rounded into it.
  if (part < 1 && part > 0.9995) {
    const int decimals = std::min(4, static_cast<int>(std::ceil(-std::log10(1 - part))) - 2);
    return fmt::format("{:.{}f} %", std::min(99.9999, 100 * part), decimals);
  }
  if (part > 0 && part < 0.0005) return "<0.1 %";
  return fmt::format("{:.1f} %", 100 * part);
}

std::string duration(Seconds time) {
  constexpr std::array<Scale, 4> scales = {{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  const double value = time.in(unit::sec);
  if (value == 0) return "0 s";
  if (value >= 7200) return fmt::format("{} h", amount(time.in(unit::hour)));
  if (value >= 600) return fmt::format("{} min", amount(time.in(unit::minute)));
  return scaled(value, scales);
}

std::string bound(Seconds time) {
  return time < unit::sec ? number(time.in(unit::ms), "-") + " ms"
                          : number(time.in(unit::sec), "-") + " s";
}

std::string data_size(Bytes size) {
  constexpr std::array<Scale, 6> scales = {
      {{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}}};
  return scaled(size.in(unit::byte), scales);
}

std::string hexadecimal(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

std::string shape(const cost::Parallelism& parallelism) {
  std::string text;
  const auto add = [&](const char* name, int degree) {
    if (degree > 1) text += fmt::format("{}{}{}", text.empty() ? "" : " ", name, degree);
  };
  add("tp", parallelism.tp);
  add("pp", parallelism.pp);
  add("dp", parallelism.dp);
  add("ep", parallelism.ep);
  return text.empty() ? "1 GPU" : text;
}

const char* name(serve::Role role) {
  switch (role) {
    case serve::Role::mixed:
      return "mixed";
    case serve::Role::prefill:
      return "prefill";
    case serve::Role::decode:
      return "decode";
  }
  RACKTWIN_CHECK(false);
}

const char* name(cost::OperatorKind kind) {
  switch (kind) {
    case cost::OperatorKind::gemm:
      return "gemm";
    case cost::OperatorKind::attention_prefill:
      return "attention_prefill";
    case cost::OperatorKind::attention_decode:
      return "attention_decode";
    case cost::OperatorKind::expert_gemm:
      return "expert_gemm";
    case cost::OperatorKind::elementwise:
      return "elementwise";
    case cost::OperatorKind::collective:
      return "collective";
  }
  RACKTWIN_CHECK(false);
}

double in_ms(const sim::Distribution& distribution, double nanoseconds) {
  return distribution.histogram.count() ? (nanoseconds * unit::ns).in(unit::ms) : nan;
}

double rate(const sim::Metrics& metrics, double per_second) {
  return metrics.duration > Seconds{} ? per_second : nan;
}

bool has_steady(const sim::Metrics& metrics) {
  return metrics.steady.from < metrics.steady.to;
}

double busy(const sim::TimeSplit& time) {
  return time.compute + time.memory + time.communication + time.overhead;
}

bool has_bound(const sim::SloOutcome& slo) {
  return slo.ttft || slo.tpot || slo.e2e;
}

double goodput(const sim::Metrics& metrics, double per_second) {
  return std::any_of(metrics.slos.begin(), metrics.slos.end(), has_bound)
             ? rate(metrics, per_second)
             : nan;
}

}  // namespace racktwin::report
