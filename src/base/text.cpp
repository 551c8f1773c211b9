#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace racktwin {
namespace {

struct Unit {
  std::string_view text;
  Dim dim;
  double base_units;
};

constexpr Dim time_dim{.time = 1}, rate_dim{.time = -1}, data_dim{.data = 1},
    data_rate_dim{.time = -1, .data = 1}, work_rate_dim{.time = -1, .work = 1},
    energy_dim{.energy = 1}, power_dim{.time = -1, .energy = 1}, money_dim{.money = 1},
    token_rate_dim{.time = -1, .token = 1}, work_dim{.work = 1}, token_dim{.token = 1};

constexpr double kibi = 1024.0;

// Ordered within a dimension by how gladly people read them; format_amount() tries in turn.
constexpr Unit units[] = {
    {"s", time_dim, 1},
    {"ms", time_dim, 1e-3},
    {"us", time_dim, 1e-6},
    {"ns", time_dim, 1e-9},
    {"min", time_dim, 60},
    {"h", time_dim, 3600},
    {"d", time_dim, 86400},
    {"/s", rate_dim, 1},
    {"/min", rate_dim, 1.0 / 60},
    {"/h", rate_dim, 1.0 / 3600},
    {"B", data_dim, 1},
    {"kB", data_dim, 1e3},
    {"MB", data_dim, 1e6},
    {"GB", data_dim, 1e9},
    {"TB", data_dim, 1e12},
    {"PB", data_dim, 1e15},
    {"KiB", data_dim, kibi},
    {"MiB", data_dim, kibi* kibi},
    {"GiB", data_dim, kibi* kibi* kibi},
    {"TiB", data_dim, kibi* kibi* kibi* kibi},
    {"B/s", data_rate_dim, 1},
    {"MB/s", data_rate_dim, 1e6},
    {"GB/s", data_rate_dim, 1e9},
    {"TB/s", data_rate_dim, 1e12},
    {"Mb/s", data_rate_dim, 1e6 / 8},
    {"Gb/s", data_rate_dim, 1e9 / 8},
    {"Tb/s", data_rate_dim, 1e12 / 8},
    {"FLOP", work_dim, 1},
    {"FLOPS", work_rate_dim, 1},
    {"GFLOPS", work_rate_dim, 1e9},
    {"TFLOPS", work_rate_dim, 1e12},
    {"PFLOPS", work_rate_dim, 1e15},
    {"EFLOPS", work_rate_dim, 1e18},
    {"J", energy_dim, 1},
    {"kWh", energy_dim, 3.6e6},
    {"MWh", energy_dim, 3.6e9},
    {"W", power_dim, 1},
    {"kW", power_dim, 1e3},
    {"MW", power_dim, 1e6},
    {"USD", money_dim, 1},
    {"tok", token_dim, 1},
    {"tok/s", token_rate_dim, 1},
};

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string units_of(Dim dim) {
  std::string list;
  for (const Unit& unit : units)
    if (unit.dim == dim) list += (list.empty() ? "" : ", ") + std::string(unit.text);
  return list;
}

Error refused(std::string message) {
  return {Error::Code::invalid_input, std::move(message), {}};
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<double> parse_amount(std::string_view text, Dim dim) {
  const std::string_view whole = trim(text);
  double value = 0;
  const auto [end, code] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
  if (code != std::errc{} || !std::isfinite(value))
    return refused(
        fmt::format("\"{}\" is no finite number with a unit (units: {})", whole, units_of(dim)));
  const std::string_view name = trim(whole.substr(static_cast<std::size_t>(end - whole.data())));
  if (name.empty())
    return refused(fmt::format("\"{}\" lacks a unit; write e.g. \"{} {}\" (units: {})", whole,
                               whole, units_of(dim).substr(0, units_of(dim).find(',')),
                               units_of(dim)));
  for (const Unit& unit : units) {
    if (unit.text != name) continue;
    if (!(unit.dim == dim))
      return refused(
          fmt::format("\"{}\" has a unit of another kind (units: {})", whole, units_of(dim)));
    const double amount = value * unit.base_units;
    if (!std::isfinite(amount)) return refused(fmt::format("\"{}\" is out of range", whole));
    return amount;
  }
  return refused(
      fmt::format("\"{}\" has an unknown unit \"{}\" (units: {})", whole, name, units_of(dim)));
}

std::string format_amount(double base_units, Dim dim) {
  std::string best;
  for (const Unit& unit : units) {
    if (!(unit.dim == dim)) continue;
    std::string text = fmt::format("{} {}", base_units / unit.base_units, unit.text);
    const auto back = parse_amount(text, dim);
    if (back.ok() && back.value() == base_units && (best.empty() || text.size() < best.size()))
      best = std::move(text);
  }
  RACKTWIN_CHECK(!best.empty());
  return best;
}

std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> known) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  std::vector<std::size_t> row;
  for (const std::string& candidate : known) {
    // Levenshtein, one row at a time; letter case counts as no edit.
    row.resize(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < name.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i + 1;
      for (std::size_t j = 0; j < candidate.size(); ++j) {
        const bool same = std::tolower(static_cast<unsigned char>(name[i])) ==
                          std::tolower(static_cast<unsigned char>(candidate[j]));
        const std::size_t edit = std::min({row[j] + 1, row[j + 1] + 1, diagonal + (same ? 0 : 1)});
        diagonal = row[j + 1];
        row[j + 1] = edit;
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         std::span<const std::string> known) {
  std::string message = fmt::format("unknown {} \"{}\"", kind, name);
  if (const auto near = nearest_name(name, known))
    message += fmt::format("; did you mean \"{}\"?", *near);
  return message + fmt::format(" (known: {})", fmt::join(known, ", "));
}

}  // namespace racktwin
