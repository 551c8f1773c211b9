// The client mixes that we ship, against the statistics that were published of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/histogram.hpp"
#include "workload/generator.hpp"

namespace racktwin::workload {
namespace {

struct Published {
  std::string mix;
  double rate, isl_mean, isl_p50, isl_p95, isl_p99, osl_mean, osl_p50, osl_p95, osl_p99, osl_max;
};

// ServeGen: rate-weighted over the clients, computed from the data that the mix names.
// Azure 2023: the rows of the trace.
const Published published[] = {
    {"deepseek-r1-reasoning", 16.0, 1268, 208, 6714, 23423, 1527, 792, 5701, 12607, 32768},
    {"azure-code", 2.57, 2048, 1469, 7303, 7436, 27.9, 13, 90, 252, 1899},
    {"azure-conv", 5.53, 1155, 1020, 4083, 4142, 211, 129, 451, 601, 1000},
};

class Mix : public ::testing::TestWithParam<Published> {};

TEST_P(Mix, drawn_requests_have_the_published_lengths) {
  const Published& want = GetParam();
  auto mix = load_mix(want.mix);
  ASSERT_TRUE(mix.ok()) << mix.error().text();
  EXPECT_NEAR(mix.value().rate.in(unit::per_second) / want.rate, 1, 0.01);
  // One whole day of two million requests; metronomes, or bursts would weigh by chance.
  OpenLoop load = std::move(mix).value();
  load.rate = 2e6 / 86400.0 * unit::per_second;
  for (Client& client : load.clients) {
    client.cv = 0;
    for (Client::Window& window : client.windows) window.cv = 0;
  }
  const auto source = generate(load, unit::day, 7);
  Histogram isl, osl;
  while (source->peek()) {
    const Request request = source->next();
    isl.add(request.isl);
    osl.add(request.osl);
    ASSERT_LE(request.osl, request.max_tokens);
  }
  const auto near = [](double have, double wanted) { return std::abs(have / wanted - 1); };
  EXPECT_LT(near(isl.mean(), want.isl_mean), 0.015) << isl.mean();
  EXPECT_LT(near(isl.percentile(0.5), want.isl_p50), 0.02) << isl.percentile(0.5);
  EXPECT_LT(near(isl.percentile(0.95), want.isl_p95), 0.02) << isl.percentile(0.95);
  EXPECT_LT(near(isl.percentile(0.99), want.isl_p99), 0.02) << isl.percentile(0.99);
  EXPECT_LT(near(osl.mean(), want.osl_mean), 0.015) << osl.mean();
  EXPECT_LT(near(osl.percentile(0.5), want.osl_p50), 0.02) << osl.percentile(0.5);
  EXPECT_LT(near(osl.percentile(0.95), want.osl_p95), 0.02) << osl.percentile(0.95);
  EXPECT_LT(near(osl.percentile(0.99), want.osl_p99), 0.02) << osl.percentile(0.99);
  EXPECT_LT(near(static_cast<double>(osl.max()), want.osl_max), 0.02) << osl.max();
}

INSTANTIATE_TEST_SUITE_P(All, Mix, ::testing::ValuesIn(published), [](const auto& instance) {
  std::string name = instance.param.mix;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Mixes, the_reasoning_day_has_the_published_skew_and_peak) {
  auto mix = load_mix("deepseek-r1-reasoning");
  ASSERT_TRUE(mix.ok()) << mix.error().text();
  double all = 0;
  std::vector<double> shares, total(144);
  for (const Client& client : mix.value().clients) {
    all += client.share;
    if (!client.name.starts_with("other")) shares.push_back(client.share);
    ASSERT_EQ(client.windows.size(), 144u) << client.name;
    double mean = 0;
    for (const Client::Window& window : client.windows) mean += window.rate / 144;
    EXPECT_NEAR(mean / client.share, 1, 0.01) << client.name;
    for (std::size_t i = 0; i < 144; ++i) total[i] += client.windows[i].rate;
  }
  std::sort(shares.rbegin(), shares.rend());
  double top = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    top += shares[i] / all;
    if (i == 0) {
      EXPECT_NEAR(top, 0.29, 0.01);
    }
    if (i == 4) {
      EXPECT_NEAR(top, 0.53, 0.01);
    }
  }
  EXPECT_NEAR(top, 0.68, 0.01);
  EXPECT_NEAR(*std::max_element(total.begin(), total.end()), 42.5, 0.2);
}

TEST(Mixes, every_mix_that_is_named_loads) {
  EXPECT_GE(mix_names().size(), 3u);
  for (const std::string& name : mix_names()) {
    const auto mix = load_mix(name);
    EXPECT_TRUE(mix.ok()) << mix.error().text();
  }
}

TEST(Mixes, an_unknown_name_is_refused_with_the_nearest) {
  const auto mix = load_mix("azure-cod");
  ASSERT_FALSE(mix.ok());
  EXPECT_NE(mix.error().text().find("did you mean \"azure-code\"?"), std::string::npos);
}

}  // namespace
}  // namespace racktwin::workload
