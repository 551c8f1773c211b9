// Queueing theory as an oracle: where a replica is a textbook queue, its waits are the
// textbook's. Means of several seeds, within what their spread allows.
#include <gtest/gtest.h>

#include <cmath>

#include "serve/driver.hpp"
#include "serve/fixtures.hpp"

namespace racktwin {
namespace {

using serve::fixtures::Driver;
using serve::fixtures::LinearModel;
using workload::Lengths;

struct Mean {
  double value = 0, error = 0;  // error: one standard deviation of the mean
};
Mean mean_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  for (const double v : values) squares += (v - sum / n) * (v - sum / n);
  return {sum / n, std::sqrt(squares / (n - 1) / n)};
}

// A queue of requests with one output token on replicas that take one at a time.
struct Queue {
  const cost::StepModel& model;
  double rate = 1;  // per second
  Lengths isl;
  int replicas = 1;
  std::string router = "round-robin";
  Seconds horizon = 60 * unit::sec;
};

struct Outcome {
  double wait = 0, time = 0;        // seconds, means
  double service = 0, squares = 0;  // moments of the service time as it came
  double rate = 0, in_system = 0;
};

Outcome serve_queue(const Queue& queue, std::uint64_t seed) {
  serve::Cluster::Setup setup = serve::fixtures::small_setup(queue.model);
  setup.pools[0].rules.max_sequences = 1;
  setup.pools[0].rules.max_batch_tokens = 1'000'000;
  setup.pools[0].rules.blocks = 1'000'000;
  setup.pools[0].pool.replicas = queue.replicas;
  setup.router.policy = queue.router;
  setup.seed = seed;
  setup.ports.gpus = 1024;
  serve::fixtures::place_in_order(setup);
  workload::OpenLoop load{.rate = queue.rate * unit::per_second};
  load.clients.push_back({.name = "all", .isl = queue.isl, .osl = {.mean = 1}});
  Driver driver(setup, workload::generate(load, queue.horizon, seed));
  driver.drain();
  Outcome out;
  double last = 0;
  for (const Driver::Ended& e : driver.ends()) {
    const serve::Active& a = e.request;
    const double service = static_cast<double>(a.last_token - a.scheduled) / 1e9;
    out.wait += static_cast<double>(a.scheduled - a.arrival) / 1e9;
    out.time += static_cast<double>(a.last_token - a.arrival) / 1e9;
    out.service += service;
    out.squares += service * service;
    last = std::max(last, static_cast<double>(a.last_token) / 1e9);
  }
  const auto n = static_cast<double>(driver.ends().size());
  out.in_system = out.time / last;
  out.rate = n / queue.horizon.in(unit::sec);
  for (double* mean : {&out.wait, &out.time, &out.service, &out.squares}) *mean /= n;
  return out;
}

constexpr int seeds = 12;

class Load : public testing::TestWithParam<double> {};

// Deterministic service of 1 ms: W = rho S / (2 (1 - rho)).
TEST_P(Load, md1_waits_as_it_should) {
  const LinearModel model({.base = 1e6});
  const double rho = GetParam();
  std::vector<double> waits;
  for (int s = 1; s <= seeds; ++s)
    waits.push_back(serve_queue({.model = model, .rate = 1000 * rho, .isl = {.mean = 4}},
                                static_cast<std::uint64_t>(s))
                        .wait);
  const double expected = rho * 1e-3 / (2 * (1 - rho));
  const Mean wait = mean_of(waits);
  EXPECT_NEAR(wait.value, expected, 4 * wait.error);
  EXPECT_LT(wait.error, 0.05 * expected);  // else it says nothing
}

// Exponential service of mean 1 ms, a token a microsecond: W = rho S / (1 - rho).
TEST_P(Load, mm1_waits_as_it_should) {
  const LinearModel model({.base = 1, .token = 1000});
  const double rho = GetParam();
  const Lengths isl{.kind = Lengths::Kind::exponential, .mean = 1000, .max = 1'000'000};
  std::vector<double> waits;
  for (int s = 1; s <= seeds; ++s)
    waits.push_back(
        serve_queue({.model = model, .rate = 1000 * rho, .isl = isl}, static_cast<std::uint64_t>(s))
            .wait);
  const double expected = rho * 1e-3 / (1 - rho);
  const Mean wait = mean_of(waits);
  EXPECT_NEAR(wait.value, expected, 4 * wait.error);
  EXPECT_LT(wait.error, 0.08 * expected);
}

// Any service: W = lambda E[S^2] / (2 (1 - rho)), Pollaczek and Khinchine, from the service
// times as they came.
TEST_P(Load, mg1_waits_by_the_moments_of_its_service) {
  const LinearModel model({.base = 200'000, .token = 700, .pair = 0.1});
  const double rho = GetParam();
  const Lengths isl{.kind = Lengths::Kind::log_normal, .mean = 800, .cv = 1, .max = 20'000};
  std::vector<double> ratios;
  for (int s = 1; s <= seeds; ++s) {
    const auto seed = static_cast<std::uint64_t>(s);
    const double service = serve_queue({.model = model, .rate = 10, .isl = isl}, seed).service;
    const Outcome o = serve_queue({.model = model, .rate = rho / service, .isl = isl}, seed);
    ratios.push_back(o.wait / (o.rate * o.squares / (2 * (1 - o.rate * o.service))));
  }
  const Mean ratio = mean_of(ratios);
  EXPECT_NEAR(ratio.value, 1, 4 * ratio.error + 0.01);
  EXPECT_LT(ratio.error, 0.08);
}

INSTANTIATE_TEST_SUITE_P(Rho, Load, testing::Values(0.3, 0.6, 0.8), [](const auto& of) {
  return "rho_0" + std::to_string(static_cast<int>(10 * of.param + 0.5));
});

// Mitzenmacher 2001: with exponential service and the better of two random queues the mean time
// in the system is the sum of rho^(2^i - 2), i = 1, 2, ...; with one random queue 1 / (1 - rho).
TEST(Supermarket, two_choices_are_worth_what_the_model_says) {
  const LinearModel model({.base = 1, .token = 1000});
  const double rho = 0.9;
  const auto time = [&](const std::string& router) {
    std::vector<double> times;
    for (std::uint64_t s = 1; s <= 4; ++s)
      times.push_back(
          serve_queue({.model = model,
                       .rate = 1000 * rho * 200,
                       .isl = {.kind = Lengths::Kind::exponential, .mean = 1000, .max = 1'000'000},
                       .replicas = 200,
                       .router = router,
                       .horizon = 500 * unit::ms},
                      s)
              .time *
          1e3);
    return mean_of(times);
  };
  double expected = 0;
  for (int i = 1; i < 12; ++i) expected += std::pow(rho, std::pow(2, i) - 2);
  const Mean two = time("power-of-two"), random = time("random");
  EXPECT_NEAR(two.value, expected, 0.06 * expected);
  EXPECT_GT(random.value, 2.5 * two.value);
}

TEST(LittlesLaw, number_in_the_system_is_rate_times_time) {
  const LinearModel model({.base = 100'000, .token = 1000});
  const Outcome o =
      serve_queue({.model = model,
                   .rate = 900,
                   .isl = {.kind = Lengths::Kind::exponential, .mean = 700, .max = 100'000}},
                  3);
  EXPECT_NEAR(o.in_system, o.rate * o.time, 0.01 * o.in_system);
}

// n sequences decode together: a step takes base + n token, and gives n tokens.
TEST(Decode, gives_a_token_per_sequence_and_step) {
  const LinearModel model({.base = 10'000, .token = 500});
  for (const std::uint32_t n : {1u, 7u, 64u}) {
    serve::Cluster::Setup setup = serve::fixtures::small_setup(model);
    setup.pools[0].rules.max_sequences = 64;
    setup.pools[0].rules.max_batch_tokens = 4096;
    serve::fixtures::place_in_order(setup);
    std::vector<workload::Request> list;
    for (std::uint32_t i = 0; i < n; ++i) list.push_back(serve::fixtures::request(i, 0, 4, 201));
    Driver driver(setup, std::make_unique<serve::fixtures::ListSource>(std::move(list)));
    driver.drain();
    for (const Driver::Ended& e : driver.ends())
      EXPECT_EQ(e.request.last_token - e.request.first_token, 200 * (10'000 + 500 * n));
  }
}

// One sequence, time proportional to the context: the sum over its steps in closed form.
TEST(Decode, reads_a_context_that_grows_by_one) {
  const LinearModel model({.base = 1000, .context = 10});
  serve::Cluster::Setup setup = serve::fixtures::small_setup(model);
  serve::fixtures::place_in_order(setup);
  Driver driver(setup, std::make_unique<serve::fixtures::ListSource>(
                           std::vector{serve::fixtures::request(0, 0, 50, 301)}));
  driver.drain();
  const serve::Active& a = driver.ends()[0].request;
  // Steps 1 to 300 see 50 + k tokens of context, their own included.
  EXPECT_EQ(a.last_token - a.first_token, 300 * 1000 + 10 * (300 * 50 + 300 * 301 / 2));
}

}  // namespace
}  // namespace racktwin
