#include "cost/step_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.hpp"
#include "cost/fixtures.hpp"

namespace racktwin::cost {
namespace {

using namespace fixtures;
using namespace unit;

std::vector<StepModelSpec> specs() {
  return {on_h200(llama_8b()),
          on_h200(llama_70b(), {.tp = 8}),
          on_h200(qwen3_235b_fp8(), {.tp = 8}),
          on_gb300(deepseek_r1(), {.dp = 8, .ep = 8}),
          on_gb300(deepseek_v32(), {.dp = 4, .ep = 4}),
          on_gb300(gpt_oss_120b(), {.tp = 2}),
          on_gb300(qwen3_next(), {.tp = 2, .ep = 2}),
          on_gb300(mamba_hybrid(), {.tp = 4})};
}

TEST(StepModel, the_operators_of_a_step_add_up_to_its_time) {
  for (const StepModelSpec& spec : specs()) {
    const auto model = speed_of_light(spec);
    const std::vector<RankWork> ranks(static_cast<std::size_t>(spec.parallelism.dp),
                                      both(prompt(700), decode(33, 3000)));
    Seconds sum;
    for (const OperatorCost& row : model->explain(ranks)) sum += row.total;
    const double total = model->cost(ranks).total().in(sec);
    EXPECT_GT(total, 0) << spec.model.name;
    EXPECT_NEAR(sum.in(sec) / total, 1, 1e-9) << spec.model.name;
  }
}

}  // namespace
}  // namespace racktwin::cost
