// Distributions of lengths: the plain draw, its mean, and the O(1) form.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.hpp"
#include "workload/samplers.hpp"

namespace racktwin::workload {
namespace {

using Kind = Lengths::Kind;

struct LogNormal {
  double mean = 0, deviation = 0;
};

LogNormal log_normal_of(const Lengths& lengths) {
  const double variance = std::log1p(lengths.cv * lengths.cv);
  return {std::log(lengths.mean) - variance / 2, std::sqrt(variance)};
}

std::int64_t clip(const Lengths& lengths, double value) {
  if (value >= static_cast<double>(lengths.max)) return lengths.max;
  return std::clamp(static_cast<std::int64_t>(std::floor(value + 0.5)), lengths.min, lengths.max);
}

std::int64_t formula(const Lengths& lengths, LogNormal log_normal, Rng& rng) {
  switch (lengths.kind) {
    case Kind::fixed:
      return clip(lengths, lengths.mean);
    case Kind::uniform:
      return lengths.min + static_cast<std::int64_t>(rng.below(
                               static_cast<std::uint64_t>(lengths.max - lengths.min) + 1));
    case Kind::log_normal:
      if (lengths.mean <= 0) return lengths.min;
      return clip(lengths, std::exp(log_normal.mean + log_normal.deviation * fast_normal(rng)));
    case Kind::exponential:
      return clip(lengths, lengths.mean * fast_exponential(rng));
    case Kind::empirical:
      break;
  }
  RACKTWIN_CHECK(lengths.kind != Kind::empirical);
  return 0;
}

double normal_part_below(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

}  // namespace

std::int64_t table_value(const Lengths& lengths, std::size_t row, double below, double above,
                         double level) {
  const std::int64_t value = lengths.table[row].first;
  std::int64_t result = value;
  if (lengths.smooth && row + 1 < lengths.table.size()) {
    const double width = static_cast<double>(lengths.table[row + 1].first - value);
    const double part = (level - below) / (above - below);
    result += static_cast<std::int64_t>(std::min(part * width, std::max(0.0, width - 1)));
  }
  return std::clamp(result, lengths.min, lengths.max);
}

std::int64_t draw(const Lengths& lengths, Rng& rng) {
  if (lengths.kind != Kind::empirical) {
    const bool log_normal = lengths.kind == Kind::log_normal && lengths.mean > 0;
    return formula(lengths, log_normal ? log_normal_of(lengths) : LogNormal{}, rng);
  }
  double total = 0;
  for (const auto& [value, weight] : lengths.table) total += weight;
  const double level = rng.uniform() * total;
  double below = 0;
  std::size_t row = 0;
  for (; row + 1 < lengths.table.size(); ++row) {
    if (level < below + lengths.table[row].second) break;
    below += lengths.table[row].second;
  }
  return table_value(lengths, row, below, below + lengths.table[row].second, level);
}

LengthSampler::LengthSampler(const Lengths& lengths) : lengths_(lengths) {
  if (lengths.kind == Kind::log_normal && lengths.mean > 0) {
    const LogNormal log_normal = log_normal_of(lengths);
    log_mean_ = log_normal.mean;
    log_deviation_ = log_normal.deviation;
  }
  if (lengths.kind != Kind::empirical) return;
  RACKTWIN_CHECK(!lengths.table.empty());
  double total = 0;
  for (const auto& [value, weight] : lengths.table) cumulative_.push_back(total += weight);
  RACKTWIN_CHECK(total > 0);
  // index_[k]: the first row that a level in [k, k+1) / index_scale_ can fall into.
  const std::size_t cells = 2 * cumulative_.size();
  index_scale_ = static_cast<double>(cells) / total;
  std::uint32_t row = 0;
  for (std::size_t k = 0; k < cells; ++k) {
    // One cell back, so that rounding of level * scale cannot skip a row.
    const double level = (static_cast<double>(k) - 1) / index_scale_;
    while (row + 1 < cumulative_.size() && cumulative_[row] <= level) ++row;
    index_.push_back(row);
  }
}

std::int64_t LengthSampler::draw_formula(Rng& rng) const {
  return formula(lengths_, {log_mean_, log_deviation_}, rng);
}

std::int64_t LengthSampler::draw_table(Rng& rng) const {
  const double level = rng.uniform() * cumulative_.back();
  const auto cell = std::min(static_cast<std::size_t>(level * index_scale_), index_.size() - 1);
  std::size_t row = index_[cell];
  while (row + 1 < cumulative_.size() && level >= cumulative_[row]) ++row;
  const double below = row == 0 ? 0 : cumulative_[row - 1];
  return table_value(lengths_, row, below, below + lengths_.table[row].second, level);
}

double mean_of(const Lengths& lengths) {
  const double min = static_cast<double>(lengths.min), max = static_cast<double>(lengths.max);
  switch (lengths.kind) {
    case Kind::fixed:
      return static_cast<double>(clip(lengths, lengths.mean));
    case Kind::uniform:
      return (min + max) / 2;
    case Kind::exponential:
      if (lengths.mean <= 0) return min;
      return min + lengths.mean * (std::exp(-min / lengths.mean) - std::exp(-max / lengths.mean));
    case Kind::log_normal: {
      if (lengths.mean <= 0) return min;
      const LogNormal ln = log_normal_of(lengths);
      if (ln.deviation == 0) return static_cast<double>(clip(lengths, lengths.mean));
      const double low = min > 0 ? (std::log(min) - ln.mean) / ln.deviation : -1e9;
      const double high = (std::log(max) - ln.mean) / ln.deviation;
      const double inside =
          normal_part_below(high - ln.deviation) - normal_part_below(low - ln.deviation);
      return min * normal_part_below(low) + lengths.mean * inside +
             max * (1 - normal_part_below(high));
    }
    case Kind::empirical:
      break;
  }
  double sum = 0, total = 0;
  for (std::size_t row = 0; row < lengths.table.size(); ++row) {
    const auto& [value, weight] = lengths.table[row];
    double mean = static_cast<double>(value);
    if (lengths.smooth && row + 1 < lengths.table.size())
      mean += std::max(0.0, static_cast<double>(lengths.table[row + 1].first - value - 1)) / 2;
    sum += weight * std::clamp(mean, min, max);
    total += weight;
  }
  return sum / total;
}

std::int64_t limit_of(const Lengths& lengths) {
  if (lengths.kind == Kind::fixed) return clip(lengths, lengths.mean);
  if (lengths.kind == Kind::empirical && !lengths.table.empty())
    return std::clamp(lengths.table.back().first, lengths.min, lengths.max);
  return lengths.max;
}

Result<Done> check(const Lengths& lengths, std::string_view name) {
  const auto refuse = [&](std::string message) {
    return Error{Error::Code::invalid_input, std::move(message), std::string(name)};
  };
  if (lengths.min < 0 || lengths.max < lengths.min)
    return refuse(fmt::format("the ends {} and {} are no range of lengths (0 <= min <= max)",
                              lengths.min, lengths.max));
  if (!std::isfinite(lengths.mean) || lengths.mean < 0 || lengths.mean > 1e15)
    return refuse(fmt::format("the mean {} is not between 0 and 1e15", lengths.mean));
  if (!std::isfinite(lengths.cv) || lengths.cv < 0 || lengths.cv > 1000)
    return refuse(fmt::format("the cv {} is not between 0 and 1000", lengths.cv));
  if (lengths.kind != Kind::empirical) return Done{};
  if (lengths.table.empty()) return refuse("an empirical distribution needs a table");
  double total = 0;
  std::int64_t last = -1;
  for (const auto& [value, weight] : lengths.table) {
    if (value <= last)
      return refuse(
          fmt::format("the table's value {} comes after {}; values rise from 0", value, last));
    if (!std::isfinite(weight) || weight < 0)
      return refuse(fmt::format("the weight {} of value {} is not >= 0", weight, value));
    last = value;
    total += weight;
  }
  if (!(total > 0)) return refuse("no value of the table has any weight");
  return Done{};
}

}  // namespace racktwin::workload
