// A short range of the swarm for every build; twin_swarm runs long ones.
#include <gtest/gtest.h>

#include "world.hpp"

namespace racktwin::swarm {
namespace {

class Swarm : public testing::TestWithParam<int> {};

TEST_P(Swarm, random_worlds_keep_every_law_and_macro_steps_change_no_token_time) {
  constexpr int per_case = 150;
  for (int k = 0; k < per_case; ++k) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * per_case + k + 1);
    const std::string text = trouble(seed);
    if (!text.empty()) {
      ADD_FAILURE() << text;
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Swarm, testing::Range(0, 10));

}  // namespace
}  // namespace racktwin::swarm
