// Reproducible random numbers. A run has one seed; each consumer has a stream of its own,
// so that a new consumer disturbs no other and two designs can be compared under the same
// arrivals (common random numbers).
//
// The distributions are ours: those of <random> differ between standard libraries.
// Generator: xoshiro256** (Blackman & Vigna 2018), seeded by splitmix64.
#pragma once

#include <cstdint>
#include <string_view>

namespace racktwin {

// A strong 64-bit mix of `x` (the finaliser of splitmix64): a bijection, so that distinct
// inputs give distinct outputs. Used to salt and chain hashes.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return mix(mix(a) ^ b);
}

class Rng {
 public:
  // Same (seed, stream, index), same numbers, on every machine and in every release.
  Rng(std::uint64_t seed, std::string_view stream, std::uint64_t index = 0);

  std::uint64_t bits();
  std::uint64_t below(std::uint64_t bound);  // uniform in [0, bound); bound > 0
  double uniform();                          // in [0, 1)
  double exponential(double mean);           // mean >= 0
  double normal(double mean, double deviation);
  double log_normal(double log_mean, double log_deviation);
  // Mean shape * scale. Marsaglia & Tsang 2000, with the boost for shape < 1. Both > 0.
  double gamma(double shape, double scale);
  double weibull(double shape, double scale);  // by inversion; both > 0

 private:
  std::uint64_t state_[4];
};

}  // namespace racktwin
