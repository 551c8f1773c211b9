// Physical quantities: a double that remembers its dimension.
//
// Bytes / BytesPerSecond is Seconds; Watts * Seconds is Joules; Bytes + Seconds does not
// compile. A quantity enters through a unit (80 * unit::GB) and leaves through one
// (x.in(unit::ms)); there is no bare .value(). Same code and speed as a double.
// Sources may say `using namespace racktwin::unit`; headers may not.
#pragma once

namespace racktwin {

struct Dim {  // exponents of the base dimensions
  int time = 0, data = 0, work = 0, energy = 0, money = 0, token = 0, water = 0, carbon = 0;
  friend constexpr bool operator==(const Dim&, const Dim&) = default;
  friend constexpr Dim operator+(Dim a, Dim b) {
    return {a.time + b.time,   a.data + b.data,   a.work + b.work,   a.energy + b.energy,
            a.money + b.money, a.token + b.token, a.water + b.water, a.carbon + b.carbon};
  }
  friend constexpr Dim operator-(Dim a, Dim b) {
    return {a.time - b.time,   a.data - b.data,   a.work - b.work,   a.energy - b.energy,
            a.money - b.money, a.token - b.token, a.water - b.water, a.carbon - b.carbon};
  }
};

template <Dim D>
class Quantity {
 public:
  static constexpr Dim dim = D;
  constexpr Quantity() = default;
  static constexpr Quantity of_base_units(double amount) { return Quantity(amount); }

  // The amount of `unit` that this quantity holds, e.g. ttft.in(unit::ms).
  constexpr double in(Quantity unit) const { return amount_ / unit.amount_; }

  constexpr Quantity& operator+=(Quantity b) {
    amount_ += b.amount_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity b) {
    amount_ -= b.amount_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.amount_ + b.amount_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.amount_ - b.amount_);
  }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity(a.amount_ * k); }
  friend constexpr Quantity operator*(double k, Quantity a) { return Quantity(a.amount_ * k); }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity(a.amount_ / k); }
  // Written out: g++ 12 compiles a defaulted <=> on double to slower code.
  friend constexpr bool operator==(Quantity a, Quantity b) { return a.amount_ == b.amount_; }
  friend constexpr bool operator<(Quantity a, Quantity b) { return a.amount_ < b.amount_; }
  friend constexpr bool operator>(Quantity a, Quantity b) { return a.amount_ > b.amount_; }
  friend constexpr bool operator<=(Quantity a, Quantity b) { return a.amount_ <= b.amount_; }
  friend constexpr bool operator>=(Quantity a, Quantity b) { return a.amount_ >= b.amount_; }

 private:
  explicit constexpr Quantity(double amount) : amount_(amount) {}
  template <Dim A, Dim B>
  friend constexpr auto operator*(Quantity<A>, Quantity<B>);
  template <Dim A, Dim B>
  friend constexpr auto operator/(Quantity<A>, Quantity<B>);
  double amount_ = 0;
};

// A ratio of like quantities is a plain double.
template <Dim A, Dim B>
constexpr auto operator*(Quantity<A> a, Quantity<B> b) {
  if constexpr (A + B == Dim{})
    return a.amount_ * b.amount_;
  else
    return Quantity<A + B>::of_base_units(a.amount_ * b.amount_);
}
template <Dim A, Dim B>
constexpr auto operator/(Quantity<A> a, Quantity<B> b) {
  if constexpr (A == B)
    return a.amount_ / b.amount_;
  else
    return Quantity<A - B>::of_base_units(a.amount_ / b.amount_);
}

using Seconds = Quantity<Dim{.time = 1}>;
using Bytes = Quantity<Dim{.data = 1}>;
using Flops = Quantity<Dim{.work = 1}>;  // floating-point operations, a count: not a rate
using Joules = Quantity<Dim{.energy = 1}>;
using Dollars = Quantity<Dim{.money = 1}>;
using Tokens = Quantity<Dim{.token = 1}>;
using BytesPerSecond = Quantity<Dim{.time = -1, .data = 1}>;
using FlopsPerSecond = Quantity<Dim{.time = -1, .work = 1}>;
using Watts = Quantity<Dim{.time = -1, .energy = 1}>;
using TokensPerSecond = Quantity<Dim{.time = -1, .token = 1}>;
using PerSecond = Quantity<Dim{.time = -1}>;

namespace unit {  // no single letters: they would hide in, or be hidden by, locals
inline constexpr Seconds sec = Seconds::of_base_units(1);
inline constexpr Seconds ms = sec / 1e3, us = sec / 1e6, ns = sec / 1e9;
inline constexpr Seconds minute = 60 * sec, hour = 3600 * sec, day = 24 * hour;
inline constexpr PerSecond per_second = PerSecond::of_base_units(1);
inline constexpr Bytes byte = Bytes::of_base_units(1);
inline constexpr Bytes KB = 1e3 * byte, MB = 1e6 * byte, GB = 1e9 * byte, TB = 1e12 * byte;
inline constexpr Bytes KiB = 1024.0 * byte, MiB = 1024.0 * KiB, GiB = 1024.0 * MiB;
inline constexpr Flops flop = Flops::of_base_units(1), TFLOP = 1e12 * flop;
inline constexpr FlopsPerSecond TFLOPS = TFLOP / sec, PFLOPS = 1e3 * TFLOPS;
inline constexpr BytesPerSecond GBps = GB / sec, TBps = TB / sec, Gbps = GBps / 8.0;
inline constexpr Joules joule = Joules::of_base_units(1);
inline constexpr Watts watt = joule / sec, kW = 1e3 * watt, MW = 1e6 * watt;
inline constexpr Dollars USD = Dollars::of_base_units(1);
inline constexpr Tokens tok = Tokens::of_base_units(1);
}  // namespace unit

}  // namespace racktwin
