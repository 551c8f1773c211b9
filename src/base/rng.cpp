#include "base/rng.hpp"

#include <cmath>
#include <numbers>

#include "base/check.hpp"

namespace racktwin {
namespace {
__extension__ using Wide = unsigned __int128;
}

Rng::Rng(std::uint64_t seed, std::string_view stream, std::uint64_t index) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a of the stream's name
  for (const char c : stream) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::uint64_t x = mix(mix(seed, hash), index);
  for (std::uint64_t& word : state_) {
    x += 0x9e3779b97f4a7c15u;
    word = mix(x);
  }
}

std::uint64_t Rng::bits() {
  const auto rotate = [](std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
  const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate(state_[3], 45);
  return result;
}

std::uint64_t Rng::below(std::uint64_t bound) {
  RACKTWIN_CHECK(bound > 0);
  // Lemire's multiply-shift; the rejection keeps it exactly uniform.
  const std::uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const auto product = static_cast<Wide>(bits()) * bound;
    if (static_cast<std::uint64_t>(product) >= threshold)
      return static_cast<std::uint64_t>(product >> 64);
  }
}

double Rng::uniform() {
  return static_cast<double>(bits() >> 11) * 0x1.0p-53;
}

double Rng::exponential(double mean) {
  return -mean * std::log1p(-uniform());
}

double Rng::normal(double mean, double deviation) {
  // Box-Muller, one of the pair: no hidden state, so that streams can be skipped.
  const double radius = std::sqrt(-2 * std::log1p(-uniform()));
  return mean + deviation * radius * std::cos(2 * std::numbers::pi * uniform());
}

double Rng::log_normal(double log_mean, double log_deviation) {
  return std::exp(normal(log_mean, log_deviation));
}

double Rng::gamma(double shape, double scale) {
  RACKTWIN_CHECK(shape > 0 && scale > 0);
  if (shape < 1) {
    const double boost = std::pow(1 - uniform(), 1 / shape);
    return gamma(shape + 1, scale) * boost;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(0, 1), v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1 - uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v * scale;
  }
}

double Rng::weibull(double shape, double scale) {
  RACKTWIN_CHECK(shape > 0 && scale > 0);
  return scale * std::pow(-std::log1p(-uniform()), 1 / shape);
}

}  // namespace racktwin
