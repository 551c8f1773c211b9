#include "catalog/catalog.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace racktwin::catalog {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = [] {
    auto result = Catalog::load(RACKTWIN_SOURCE_DIR "/data");
    if (!result.ok()) ADD_FAILURE() << result.error().text();
    return result.ok() ? std::move(result).value() : Catalog();
  }();
  return loaded;
}

TEST(Catalog, the_reference_cluster_is_64_racks_of_72_gpus) {
  const auto cluster = catalog().cluster("gb300-64-racks");
  ASSERT_TRUE(cluster.ok()) << cluster.error().text();
  const auto system = catalog().system(cluster.value().system);
  ASSERT_TRUE(system.ok());
  EXPECT_EQ(cluster.value().racks * system.value().gpus_per_rack, 4608);
}

TEST(Catalog, deepseek_r1_counts_671_billion) {
  const auto model = catalog().model("DeepSeek-R1");
  ASSERT_TRUE(model.ok()) << model.error().text();
  const Parameters p = parameters(model.value());
  EXPECT_NEAR(static_cast<double>(p.total), 671.03e9, 0.005e9);
  EXPECT_NEAR(static_cast<double>(p.active), 37.55e9, 0.01e9);
  EXPECT_EQ(kv_bytes_per_token(model.value()), 61 * 576 * 2);
}

TEST(Catalog, llama_8b_counts_to_the_last_parameter) {
  const auto model = catalog().model("llama-3.1-8b");
  ASSERT_TRUE(model.ok()) << model.error().text();
  EXPECT_EQ(parameters(model.value()).total, 8030261248);
  EXPECT_EQ(kv_bytes_per_token(model.value()), 131072);
}

}  // namespace
}  // namespace racktwin::catalog
