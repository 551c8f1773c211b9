// Fast samplers behind the generators: unit gaps (ziggurat), lengths in O(1) (indexed search
// of the cumulative weights), and the arrivals of one client with a rate that changes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "workload/generator.hpp"

namespace racktwin::workload {

// Exponential of mean 1 and standard normal by the ziggurat of Marsaglia & Tsang 2000
// (256 layers, 53-bit uniforms): one multiplication and one comparison 98.9 % of the time.
double fast_exponential(Rng&);
double fast_normal(Rng&);
double fast_gamma(double shape, Rng&);  // scale 1; Marsaglia & Tsang 2000; shape > 0

// Gaps of mean 1. cv = 0 is a metronome.
class GapSampler {
 public:
  GapSampler(Arrivals::Kind, double cv);
  double draw(Rng&) const;
  // The time to the first arrival after a moment unrelated to the process: a uniform part of
  // a length-biased gap.
  double draw_residual(Rng&) const;

 private:
  Arrivals::Kind kind_;
  double shape_ = 1, scale_ = 1;
  bool metronome_ = false;
};

// The shape of the Weibull distribution whose deviation over mean is cv > 0.
double weibull_shape(double cv);

// Same values as draw(Lengths, Rng), in O(1) (Chen & Asau 1974 for tables).
class LengthSampler {
 public:
  explicit LengthSampler(const Lengths&);
  std::int64_t draw(Rng& rng) const {
    return lengths_.kind == Lengths::Kind::empirical ? draw_table(rng) : draw_formula(rng);
  }

 private:
  std::int64_t draw_formula(Rng&) const;
  std::int64_t draw_table(Rng&) const;
  Lengths lengths_;
  std::vector<double> cumulative_;  // running sums of the weights
  std::vector<std::uint32_t> index_;
  double log_mean_ = 0, log_deviation_ = 0, index_scale_ = 0;
};

// The value of a table at the level u in [0, 1) of its weights; used by both forms above.
std::int64_t table_value(const Lengths&, std::size_t row, double below, double above, double level);

// Arrival times of one client, never falling; +infinity once `horizon` is passed.
class ArrivalStream {
 public:
  struct Rate {
    double per_second = 1;
    Diurnal diurnal;
    std::vector<Client::Window> windows;  // at least one
    double window_s = 600;
  };
  ArrivalStream(Rate, double horizon_s, Rng);
  double now() const { return at_; }  // of the next arrival, seconds
  void advance() { move(gaps_[window_].draw(rng_)); }

 private:
  void move(double gap) {
    const double next = at_ + gap * seconds_per_gap_;
    if (next < segment_end_)
      at_ = next;
    else
      move_across(gap);
  }
  void move_across(double gap);
  void enter_segment();  // the one that starts at at_
  Rate rate_;
  std::vector<GapSampler> gaps_;  // by window
  double mean_window_rate_ = 1, horizon_s_ = 0;
  double at_ = 0, segment_end_ = 0, seconds_per_gap_ = 1;
  std::size_t window_ = 0;
  std::int64_t diurnal_step_ = 0, window_step_ = 0;  // counted from time 0
  Rng rng_;
};

// From request or block ids (any 64-bit keys but the largest) to indices; open addressing.
class IdMap {
 public:
  std::optional<std::uint32_t> find(std::uint64_t key) const;
  bool insert(std::uint64_t key, std::uint32_t value);  // false: was there, and stays
  std::uint32_t put(std::uint64_t key, std::uint32_t value, bool& fresh);  // the value it has
  std::optional<std::uint32_t> take(std::uint64_t key);
  std::size_t size() const { return size_; }

 private:
  static constexpr std::uint64_t empty = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = empty;
    std::uint32_t value = 0;
  };
  std::size_t slot_of(std::uint64_t key) const;  // its own or the free one it would take
  void grow();
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

std::unique_ptr<Source> open_loop(const OpenLoop&, Seconds horizon, std::uint64_t seed);
std::unique_ptr<Source> closed_loop(const ClosedLoop&, Seconds horizon, std::uint64_t seed);
std::unique_ptr<Source> burst(const Burst&, Seconds horizon, std::uint64_t seed);
std::unique_ptr<Source> sessions(const Sessions&, Seconds horizon, std::uint64_t seed);

}  // namespace racktwin::workload
