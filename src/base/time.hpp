// Instant: a point on the simulated time line, an exact count of nanoseconds.
// Models compute in Seconds; the clock counts in Instants; the sum below is the one place
// where a double becomes a tick.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

#include "base/check.hpp"
#include "base/units.hpp"

namespace racktwin {

class Instant {
 public:
  constexpr Instant() = default;  // the start of the run
  static constexpr Instant at_ns(std::int64_t ns) {
    Instant t;
    t.ns_ = ns;
    return t;
  }
  constexpr std::int64_t ns() const { return ns_; }

  // Rounds up, so that positive work never takes zero time; at most 1 ns is added.
  // Refuses (aborts) a negative, non-finite or over-long (> 146 years) duration.
  friend Instant operator+(Instant t, Seconds d) {
    const double ns = std::ceil(d.in(unit::ns));
    RACKTWIN_CHECK(ns >= 0 && ns < 4.6e18);
    return at_ns(t.ns_ + static_cast<std::int64_t>(ns));
  }
  friend constexpr Seconds operator-(Instant a, Instant b) {
    return static_cast<double>(a.ns_ - b.ns_) * unit::ns;
  }
  friend constexpr auto operator<=>(Instant, Instant) = default;

 private:
  std::int64_t ns_ = 0;
};

// Since the start of the run.
constexpr Seconds since_start(Instant t) {
  return t - Instant{};
}

}  // namespace racktwin
