#include "workload/samplers.hpp"

#include <math.h>  // lgamma_r: std::lgamma writes a global

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.hpp"

namespace racktwin::workload {
namespace {

// Layers 0..255 of equal area under a falling density f with f(0) = 1: x[i] is the right end
// of layer i, x[0] the width of a rectangle with the area of layer 0 and the tail beyond
// `start`. Constants of Marsaglia & Tsang 2000 for 256 layers.
struct Ziggurat {
  std::array<double, 257> x{}, f{};
};

template <class Density, class Inverse>
Ziggurat layers(double start, double area, Density density, Inverse inverse) {
  Ziggurat z;
  z.x[0] = area / density(start);
  z.x[1] = start;
  for (std::size_t i = 1; i < 255; ++i) z.x[i + 1] = inverse(density(z.x[i]) + area / z.x[i]);
  z.x[256] = 0;
  for (std::size_t i = 0; i <= 256; ++i) z.f[i] = density(z.x[i]);
  return z;
}

constexpr double exponential_start = 7.69711747013104972;
constexpr double normal_start = 3.6541528853610088;

const Ziggurat exponential_layers = layers(
    exponential_start, 0.0039496598225815571993, [](double x) { return std::exp(-x); },
    [](double y) { return -std::log(y); });
const Ziggurat normal_layers = layers(
    normal_start, 0.00492867323399, [](double x) { return std::exp(-0.5 * x * x); },
    [](double y) { return std::sqrt(-2 * std::log(y)); });

double lgamma_of(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

}  // namespace

double fast_exponential(Rng& rng) {
  const Ziggurat& z = exponential_layers;
  double beyond = 0;  // the tail of an exponential is an exponential
  for (;;) {
    const std::uint64_t bits = rng.bits();
    const std::size_t i = bits & 255;
    const double x = static_cast<double>(bits >> 11) * 0x1.0p-53 * z.x[i];
    if (x < z.x[i + 1]) return beyond + x;
    if (i == 0) {
      beyond += exponential_start;
      continue;
    }
    if (z.f[i] + rng.uniform() * (z.f[i + 1] - z.f[i]) < std::exp(-x)) return beyond + x;
  }
}

double fast_normal(Rng& rng) {
  const Ziggurat& z = normal_layers;
  for (;;) {
    const std::uint64_t bits = rng.bits();
    const std::size_t i = bits & 255;
    const double sign = (bits & 256) ? 1 : -1;
    const double x = static_cast<double>(bits >> 11) * 0x1.0p-53 * z.x[i];
    if (x < z.x[i + 1]) return sign * x;
    if (i == 0) {  // Marsaglia 1964
      double a = 0, b = 0;
      do {
        a = fast_exponential(rng) / normal_start;
        b = fast_exponential(rng);
      } while (2 * b < a * a);
      return sign * (normal_start + a);
    }
    if (z.f[i] + rng.uniform() * (z.f[i + 1] - z.f[i]) < std::exp(-0.5 * x * x)) return sign * x;
  }
}

double fast_gamma(double shape, Rng& rng) {
  // A gamma of shape k < 1 is one of k + 1 times U^(1/k), and -log U is exponential.
  if (shape < 1) {
    const double larger = fast_gamma(shape + 1, rng);
    return larger * std::exp(-fast_exponential(rng) / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = fast_normal(rng), t = 1 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t, u = 1 - rng.uniform(), x2 = x * x;
    if (u < 1 - 0.0331 * x2 * x2) return d * v;
    if (std::log(u) < 0.5 * x2 + d - d * v + d * std::log(v)) return d * v;
  }
}

double weibull_shape(double cv) {
  RACKTWIN_CHECK(cv > 0);
  const double wanted = std::log1p(cv * cv);
  double low = std::log(0.02), high = std::log(1e4);  // the cv falls with the shape
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2, inverse = std::exp(-middle);
    const double have = lgamma_of(1 + 2 * inverse) - 2 * lgamma_of(1 + inverse);
    (have > wanted ? low : high) = middle;
  }
  return std::exp((low + high) / 2);
}

GapSampler::GapSampler(Arrivals::Kind kind, double cv) : kind_(kind) {
  RACKTWIN_CHECK(cv >= 0 && std::isfinite(cv));
  if (kind == Arrivals::Kind::poisson) return;
  metronome_ = cv == 0;
  if (metronome_) return;
  if (kind == Arrivals::Kind::gamma) {
    shape_ = 1 / (cv * cv);
    scale_ = cv * cv;
  } else {
    shape_ = weibull_shape(cv);
    scale_ = std::exp(-lgamma_of(1 + 1 / shape_));
  }
}

double GapSampler::draw(Rng& rng) const {
  if (metronome_) return 1;
  switch (kind_) {
    case Arrivals::Kind::poisson:
      return fast_exponential(rng);
    case Arrivals::Kind::gamma:
      return scale_ * fast_gamma(shape_, rng);
    case Arrivals::Kind::weibull:
      return scale_ * std::exp(std::log(fast_exponential(rng)) / shape_);
  }
  return 1;
}

double GapSampler::draw_residual(Rng& rng) const {
  // The length-biased density x f(x): a gamma of one more shape; for a Weibull, the power
  // 1/k of a gamma of shape 1 + 1/k.
  const double part = rng.uniform();
  if (metronome_) return part;
  switch (kind_) {
    case Arrivals::Kind::poisson:
      return fast_exponential(rng);
    case Arrivals::Kind::gamma:
      return part * scale_ * fast_gamma(shape_ + 1, rng);
    case Arrivals::Kind::weibull:
      return part * scale_ * std::exp(std::log(fast_gamma(1 + 1 / shape_, rng)) / shape_);
  }
  return part;
}

namespace {
constexpr double never = std::numeric_limits<double>::infinity();
constexpr double diurnal_steps = 4096;

// The mean of 1 + swing * cos(2 pi (t - peak) / period) over [begin, end].
double mean_factor(const Diurnal& d, double begin, double end) {
  const double turn = 2 * std::numbers::pi / d.period.in(unit::sec);
  const double peak = d.peak.in(unit::sec);
  const double area = std::sin(turn * (end - peak)) - std::sin(turn * (begin - peak));
  return std::max(0.0, 1 + d.swing * area / (turn * (end - begin)));
}
}  // namespace

ArrivalStream::ArrivalStream(Rate rate, double horizon_s, Rng rng)
    : rate_(std::move(rate)), horizon_s_(horizon_s), rng_(rng) {
  RACKTWIN_CHECK(!rate_.windows.empty() && rate_.window_s > 0 && rate_.per_second >= 0);
  double sum = 0;
  for (const Client::Window& window : rate_.windows) {
    gaps_.emplace_back(window.kind, window.cv);
    sum += window.rate;
  }
  mean_window_rate_ = sum / static_cast<double>(rate_.windows.size());
  if (!(rate_.per_second > 0 && mean_window_rate_ > 0 && horizon_s > 0)) {
    at_ = never;
    return;
  }
  enter_segment();
  move(gaps_[window_].draw_residual(rng_));
}

// Segments are counted, not added up, so that their ends carry no rounding of the past.
void ArrivalStream::enter_segment() {
  double factor = 1;
  segment_end_ = never;
  if (rate_.diurnal.swing > 0) {
    const double step = rate_.diurnal.period.in(unit::sec) / diurnal_steps;
    while (static_cast<double>(diurnal_step_ + 1) * step <= at_) ++diurnal_step_;
    segment_end_ = static_cast<double>(diurnal_step_ + 1) * step;
    factor = mean_factor(rate_.diurnal, static_cast<double>(diurnal_step_) * step, segment_end_);
  }
  if (rate_.windows.size() > 1) {
    while (static_cast<double>(window_step_ + 1) * rate_.window_s <= at_) ++window_step_;
    segment_end_ = std::min(segment_end_, static_cast<double>(window_step_ + 1) * rate_.window_s);
    window_ = static_cast<std::size_t>(window_step_) % rate_.windows.size();
    factor *= rate_.windows[window_].rate / mean_window_rate_;
  }
  const double now = rate_.per_second * factor;
  seconds_per_gap_ = now > 0 ? 1 / now : never;
}

void ArrivalStream::move_across(double gap) {
  for (;;) {
    // A rate of zero lets no part of the gap pass.
    const double next = seconds_per_gap_ == never ? never : at_ + gap * seconds_per_gap_;
    if (next < segment_end_) {
      at_ = next;
      return;
    }
    if (segment_end_ >= horizon_s_) {
      at_ = never;
      return;
    }
    if (seconds_per_gap_ != never)
      gap = std::max(0.0, gap - (segment_end_ - at_) / seconds_per_gap_);
    at_ = segment_end_;
    enter_segment();
  }
}

std::size_t IdMap::slot_of(std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = mix(key) & mask;
  while (slots_[i].key != empty && slots_[i].key != key) i = (i + 1) & mask;
  return i;
}

std::optional<std::uint32_t> IdMap::find(std::uint64_t key) const {
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[slot_of(key)];
  if (slot.key == empty) return std::nullopt;
  return slot.value;
}

bool IdMap::insert(std::uint64_t key, std::uint32_t value) {
  bool fresh = false;
  put(key, value, fresh);
  return fresh;
}

std::uint32_t IdMap::put(std::uint64_t key, std::uint32_t value, bool& fresh) {
  RACKTWIN_CHECK(key != empty);
  if (slots_.empty() || size_ * 10 >= slots_.size() * 7) grow();
  Slot& slot = slots_[slot_of(key)];
  fresh = slot.key != key;
  if (!fresh) return slot.value;
  slot = {key, value};
  ++size_;
  return value;
}

std::optional<std::uint32_t> IdMap::take(std::uint64_t key) {
  if (slots_.empty()) return std::nullopt;
  std::size_t hole = slot_of(key);
  if (slots_[hole].key == empty) return std::nullopt;
  const std::uint32_t value = slots_[hole].value;
  const std::size_t mask = slots_.size() - 1;
  // Closes the gap: later keys of the same run move back where that brings them nearer home.
  for (std::size_t i = (hole + 1) & mask; slots_[i].key != empty; i = (i + 1) & mask) {
    const std::size_t home = mix(slots_[i].key) & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    slots_[hole] = slots_[i];
    hole = i;
  }
  slots_[hole] = Slot{};
  --size_;
  return value;
}

void IdMap::grow() {
  std::vector<Slot> old(std::max<std::size_t>(64, slots_.size() * 2));
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.key != empty) slots_[slot_of(slot.key)] = slot;
}

}  // namespace racktwin::workload
