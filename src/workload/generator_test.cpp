#include "workload/generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/histogram.hpp"
#include "workload/samplers.hpp"

namespace racktwin::workload {
namespace {

using Kind = Arrivals::Kind;

Lengths fixed(double value) {
  return {.kind = Lengths::Kind::fixed, .mean = value};
}

OpenLoop plain(double per_second, Kind kind = Kind::poisson, double cv = 1) {
  return {
      .rate = per_second * unit::per_second,
      .clients = {{.name = "all", .kind = kind, .cv = cv, .isl = fixed(100), .osl = fixed(10)}}};
}

std::vector<Request> drain(Source& source) {
  std::vector<Request> requests;
  while (const auto when = source.peek()) {
    requests.push_back(source.next());
    EXPECT_EQ(requests.back().arrival, *when);
  }
  return requests;
}

struct Moments {
  double mean = 0, cv = 0;
};
Moments moments(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  const double mean = sum / static_cast<double>(values.size());
  for (const double v : values) squares += (v - mean) * (v - mean);
  return {mean, std::sqrt(squares / static_cast<double>(values.size())) / mean};
}

TEST(Samplers, ziggurat_normal_has_the_normal_distribution) {
  Rng rng(1, "normal");
  const int n = 1000000;
  std::map<int, int> below;  // at -3, -2, ..., 3 deviations
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < n; ++i) {
    const double x = fast_normal(rng);
    sum += x, squares += x * x, fourth += x * x * x * x;
    for (int z = -3; z <= 3; ++z) below[z] += x < z;
  }
  EXPECT_NEAR(sum / n, 0, 0.004);
  EXPECT_NEAR(squares / n, 1, 0.006);
  EXPECT_NEAR(fourth / n, 3, 0.05);
  for (int z = -3; z <= 3; ++z) {
    const double p = 0.5 * std::erfc(-z / std::sqrt(2.0));
    EXPECT_NEAR(below[z] / double{n}, p, 4 * std::sqrt(p * (1 - p) / n)) << z;
  }
}

TEST(Samplers, ziggurat_exponential_has_the_exponential_distribution) {
  Rng rng(1, "exponential");
  const int n = 1000000;
  std::map<int, int> beyond;
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const double x = fast_exponential(rng);
    sum += x;
    for (int t = 1; t <= 9; t += 2) beyond[t] += x > t;  // 9: past the last layer, 7.7
  }
  EXPECT_NEAR(sum / n, 1, 0.004);
  for (int t = 1; t <= 9; t += 2) {
    const double p = std::exp(-t);
    EXPECT_NEAR(beyond[t] / double{n}, p, 4.5 * std::sqrt(p / n)) << t;
  }
}

TEST(Samplers, gaps_have_mean_one_and_the_cv_asked_for) {
  for (const Kind kind : {Kind::gamma, Kind::weibull})
    for (const double cv : {0.25, 0.7, 1.0, 2.0, 4.0}) {
      const GapSampler gaps(kind, cv);
      Rng rng(3, "gaps");
      std::vector<double> drawn(2000000);
      for (double& gap : drawn) gap = gaps.draw(rng);
      const Moments m = moments(drawn);
      EXPECT_NEAR(m.mean, 1, 0.003 + 0.004 * cv) << cv;
      EXPECT_NEAR(m.cv / cv, 1, 0.03) << cv;
    }
}

TEST(Samplers, weibull_shape_one_is_the_exponential) {
  EXPECT_NEAR(weibull_shape(1), 1, 1e-9);
  // Shape 1/2: mean 2, second moment 24, so cv^2 = 5.
  EXPECT_NEAR(weibull_shape(std::sqrt(5.0)), 0.5, 1e-9);
}

TEST(Samplers, the_fast_table_gives_the_values_of_the_plain_draw) {
  Rng shape(9, "shape");
  for (int round = 0; round < 200; ++round) {
    Lengths lengths{.kind = Lengths::Kind::empirical, .smooth = round % 2 == 0};
    std::int64_t value = 0;
    const std::uint64_t rows = 1 + shape.below(60);
    for (std::uint64_t i = 0; i < rows; ++i) {
      value += 1 + static_cast<std::int64_t>(shape.below(50));
      lengths.table.emplace_back(value, shape.below(4) == 0 ? 0.0 : shape.exponential(1));
    }
    lengths.table.front().second += 0.5;
    const LengthSampler fast(lengths);
    Rng a(5, "draw", static_cast<std::uint64_t>(round)), b = a;
    for (int i = 0; i < 500; ++i) ASSERT_EQ(fast.draw(a), draw(lengths, b));
  }
}

TEST(Samplers, the_fast_formulas_give_the_values_of_the_plain_draw) {
  for (const Lengths& lengths :
       {Lengths{.kind = Lengths::Kind::log_normal, .mean = 700, .cv = 1.5, .max = 5000},
        Lengths{.kind = Lengths::Kind::exponential, .mean = 300, .min = 4},
        Lengths{.kind = Lengths::Kind::uniform, .min = 3, .max = 9}, fixed(12)}) {
    const LengthSampler fast(lengths);
    Rng a(5, "draw"), b = a;
    for (int i = 0; i < 2000; ++i) ASSERT_EQ(fast.draw(a), draw(lengths, b));
  }
}

TEST(Lengths, drawn_means_are_the_means_that_mean_of_says) {
  std::vector<Lengths> all = {
      fixed(512),
      {.kind = Lengths::Kind::uniform, .min = 10, .max = 20},
      {.kind = Lengths::Kind::log_normal, .mean = 1500, .cv = 1.2, .min = 50, .max = 4000},
      {.kind = Lengths::Kind::exponential, .mean = 8000, .min = 1, .max = 32000},
      {.kind = Lengths::Kind::empirical, .table = {{10, 1}, {20, 3}, {100, 0}}, .smooth = true},
      {.kind = Lengths::Kind::empirical, .table = {{10, 1}, {20, 3}}}};
  for (const Lengths& lengths : all) {
    Rng rng(11, "lengths");
    std::vector<double> values(400000);
    for (double& value : values) {
      const std::int64_t drawn = draw(lengths, rng);
      ASSERT_GE(drawn, lengths.min);
      ASSERT_LE(drawn, limit_of(lengths));
      value = static_cast<double>(drawn);
    }
    const double mean = mean_of(lengths);
    EXPECT_NEAR(moments(values).mean / mean, 1, 0.01) << static_cast<int>(lengths.kind);
  }
}

TEST(Lengths, a_smooth_table_reaches_every_value_between_its_rows_equally) {
  const Lengths lengths{
      .kind = Lengths::Kind::empirical, .table = {{10, 1}, {14, 1}, {15, 0}}, .smooth = true};
  Rng rng(2, "x");
  std::map<std::int64_t, int> seen;
  for (int i = 0; i < 80000; ++i) ++seen[draw(lengths, rng)];
  for (const std::int64_t v : {10, 11, 12, 13}) EXPECT_NEAR(seen[v], 10000, 400) << v;
  EXPECT_NEAR(seen[14], 40000, 800);
  EXPECT_EQ(seen.size(), 5u);
}

TEST(Lengths, unsound_distributions_are_refused_with_the_reason) {
  EXPECT_NE(check(Lengths{.kind = Lengths::Kind::empirical}, "isl")
                .error()
                .text()
                .find("isl: an empirical distribution needs a table"),
            std::string::npos);
  EXPECT_FALSE(check(Lengths{.min = 5, .max = 4}, "x").ok());
  EXPECT_FALSE(check(Lengths{.mean = std::nan("")}, "x").ok());
  EXPECT_FALSE(check(Lengths{.cv = -1}, "x").ok());
  using Table = std::vector<std::pair<std::int64_t, double>>;
  for (const Table& table : {Table{{5, 1}, {5, 1}}, Table{{5, -1}}, Table{{5, 0}}})
    EXPECT_FALSE(check(Lengths{.kind = Lengths::Kind::empirical, .table = table}, "x").ok());
}

TEST(OpenLoop, arrivals_are_ordered_within_the_horizon_and_numbered) {
  OpenLoop load = plain(50, Kind::gamma, 3);
  for (int i = 0; i < 9; ++i) load.clients.push_back(load.clients.front());
  const auto source = generate(load, 100 * unit::sec, 4);
  const std::vector<Request> requests = drain(*source);
  ASSERT_GT(requests.size(), 1000u);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].id.index, i);
    if (i > 0) {
      EXPECT_GE(requests[i].arrival, requests[i - 1].arrival);
    }
    EXPECT_LT(requests[i].arrival, Instant{} + 100 * unit::sec);
  }
}

TEST(OpenLoop, the_count_is_rate_times_time_for_every_kind_of_gap) {
  // Over many seeds the mean count must be exact from the very start, also for bursty gaps:
  // the first gap is a residual one.
  for (const Kind kind : {Kind::poisson, Kind::gamma, Kind::weibull}) {
    double count = 0;
    const int seeds = 4000;
    for (int seed = 0; seed < seeds; ++seed) {
      const auto source = generate(plain(1, kind, 3), 10 * unit::sec, static_cast<unsigned>(seed));
      count += static_cast<double>(drain(*source).size());
    }
    EXPECT_NEAR(count / seeds, 10, 0.75) << static_cast<int>(kind);  // an ordinary start: 14
  }
}

TEST(OpenLoop, twice_the_rate_is_the_same_arrivals_in_half_the_time) {
  const auto slow = generate(plain(10, Kind::gamma, 2), 200 * unit::sec, 8);
  const auto fast = generate(plain(20, Kind::gamma, 2), 100 * unit::sec, 8);
  const auto a = drain(*slow), b = drain(*fast);
  ASSERT_GT(std::min(a.size(), b.size()), 1500u);
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    ASSERT_NEAR(static_cast<double>(a[i].arrival.ns()), 2 * static_cast<double>(b[i].arrival.ns()),
                4);
}

TEST(OpenLoop, other_lengths_leave_the_arrivals_alone) {
  OpenLoop other = plain(30, Kind::weibull, 2);
  other.clients[0].isl = {.kind = Lengths::Kind::log_normal, .mean = 900, .cv = 2};
  const auto first = generate(plain(30, Kind::weibull, 2), 60 * unit::sec, 5);
  const auto second = generate(other, 60 * unit::sec, 5);
  const auto a = drain(*first), b = drain(*second);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i].arrival, b[i].arrival);
}

TEST(OpenLoop, a_swing_moves_requests_to_the_peak_and_keeps_the_total) {
  OpenLoop load = plain(2);
  load.diurnal = {.swing = 0.8, .period = 24 * unit::hour, .peak = 14 * unit::hour};
  const auto source = generate(load, 24 * unit::hour, 3);
  std::vector<double> hours(24);
  double total = 0;
  for (const Request& request : drain(*source)) {
    ++hours[static_cast<std::size_t>(since_start(request.arrival).in(unit::hour))];
    ++total;
  }
  EXPECT_NEAR(total / (2 * 86400), 1, 0.01);
  // Mean of 1 + 0.8 cos over the hour around the peak and the trough.
  EXPECT_NEAR((hours[13] + hours[14]) / 2 / 7200, 1.79, 0.03);
  EXPECT_NEAR((hours[1] + hours[2]) / 2 / 7200, 0.21, 0.03);
}

TEST(OpenLoop, windows_give_each_part_its_rate_and_repeat) {
  OpenLoop load = plain(10);
  load.clients[0].window = 100 * unit::sec;
  load.clients[0].windows = {{1, Kind::poisson, 1}, {0, Kind::poisson, 1}, {5, Kind::poisson, 1}};
  const auto source = generate(load, 900 * unit::sec, 3);
  std::vector<double> parts(9);
  for (const Request& request : drain(*source))
    ++parts[static_cast<std::size_t>(since_start(request.arrival).in(100 * unit::sec))];
  for (std::size_t round = 0; round < 3; ++round) {
    EXPECT_NEAR(parts[3 * round], 500, 100);
    EXPECT_EQ(parts[3 * round + 1], 0);
    EXPECT_NEAR(parts[3 * round + 2], 2500, 220);
  }
}

TEST(OpenLoop, shares_split_the_rate_and_classes_and_lengths_follow_the_client) {
  OpenLoop load = plain(100);
  load.clients.push_back(
      {.name = "b", .share = 3, .isl = fixed(7), .osl = fixed(2), .slo_class = 2});
  double b = 0, all = 0;
  const auto source = generate(load, 200 * unit::sec, 3);
  for (const Request& request : drain(*source)) {
    ++all;
    if (request.slo_class != 2) continue;
    ++b;
    EXPECT_EQ(request.isl, 7);
    EXPECT_EQ(request.osl, 2);
    EXPECT_EQ(request.max_tokens, 2);
  }
  EXPECT_NEAR(b / all, 0.75, 0.01);
  EXPECT_NEAR(all, 20000, 600);
}

TEST(OpenLoop, periods_change_the_lengths_by_the_part_of_the_day) {
  OpenLoop load = plain(10);
  load.clients[0].period = 50 * unit::sec;
  load.clients[0].periods = {{fixed(1), fixed(2)}, {fixed(3), fixed(4)}};
  const auto source = generate(load, 200 * unit::sec, 3);
  for (const Request& request : drain(*source)) {
    const bool odd = static_cast<int>(since_start(request.arrival).in(50 * unit::sec)) % 2 == 1;
    ASSERT_EQ(request.isl, odd ? 3 : 1);
    ASSERT_EQ(request.osl, odd ? 4 : 2);
  }
}

TEST(ClosedLoop, holds_the_concurrency_and_ends_after_the_requests_asked_for) {
  const ClosedLoop load{.concurrency = 4, .requests = 50, .isl = fixed(10), .osl = fixed(10)};
  const auto source = generate(load, unit::hour, 1);
  std::vector<RequestId> in_flight;
  Instant now;
  int given = 0;
  for (;;) {
    while (const auto when = source->peek()) {
      EXPECT_GE(*when, now);
      in_flight.push_back(source->next().id);
      ++given;
      ASSERT_LE(in_flight.size(), 4u);
    }
    if (in_flight.empty()) break;
    if (given < 50) {
      EXPECT_EQ(in_flight.size(), 4u);
    }
    now = now + unit::sec;
    source->completed(in_flight.front(), now);
    in_flight.erase(in_flight.begin());
  }
  EXPECT_EQ(given, 50);
}

TEST(ClosedLoop, gives_nothing_from_the_horizon_on) {
  const ClosedLoop load{.concurrency = 1, .isl = fixed(10), .osl = fixed(10)};
  const auto source = generate(load, 10 * unit::sec, 1);
  int given = 0;
  Instant now;
  while (source->peek()) {
    const RequestId id = source->next().id;
    ++given;
    source->completed(id, now = now + unit::sec);
  }
  EXPECT_EQ(given, 10);  // at 0, 1, ..., 9 s
}

TEST(Burst, gives_all_at_once) {
  const auto source =
      generate(Burst{.requests = 1000, .isl = fixed(10), .osl = fixed(10)}, unit::minute, 1);
  const auto requests = drain(*source);
  EXPECT_EQ(requests.size(), 1000u);
  EXPECT_EQ(requests.back().arrival, Instant{});
  source->completed(RequestId{3}, Instant{} + unit::sec);
  EXPECT_FALSE(source->peek().has_value());
}

TEST(Generate, same_seed_same_requests_other_seed_others) {
  const auto digest = [](std::uint64_t seed) {
    const auto source = generate(plain(100, Kind::gamma, 2), 10 * unit::sec, seed);
    std::uint64_t value = 0;
    while (source->peek()) {
      const Request request = source->next();
      value = mix(value, static_cast<std::uint64_t>(request.arrival.ns()));
    }
    return value;
  };
  EXPECT_EQ(digest(1), digest(1));
  EXPECT_NE(digest(1), digest(2));
}

TEST(Generate, unsound_loads_are_refused_by_name) {
  EXPECT_FALSE(check(Load{OpenLoop{}}).ok());
  OpenLoop load = plain(1);
  load.clients[0].cv = std::nan("");
  EXPECT_NE(check(Load{load}).error().text().find("client \"all\""), std::string::npos);
  EXPECT_FALSE(check(Load{ClosedLoop{.concurrency = 0}}).ok());
  EXPECT_FALSE(check(Load{Burst{.requests = 0}}).ok());
  Sessions sessions;
  sessions.sub_agents = 1.5;
  EXPECT_FALSE(check(Load{sessions}).ok());
}

}  // namespace
}  // namespace racktwin::workload
