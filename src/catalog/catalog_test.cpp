#include "catalog/catalog.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/embedded.hpp"
#include "base/file.hpp"

namespace racktwin::catalog {
namespace {

namespace fs = std::filesystem;
using numerics::Format;

const std::string data = RACKTWIN_SOURCE_DIR "/data";

const Catalog& catalog() {
  static const Catalog loaded = [] {
    auto result = Catalog::load(data);
    if (!result.ok()) ADD_FAILURE() << result.error().text();
    return result.ok() ? std::move(result).value() : Catalog();
  }();
  return loaded;
}

// A catalogue of one file, thrown away with the test.
class Folder {
 public:
  explicit Folder(const char* name)
      : path_(fs::temp_directory_path() /
              ("racktwin_catalog_" + std::to_string(::getpid()) + std::string(name))) {
    fs::remove_all(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  void add(const std::string& file, const std::string& text) const {
    EXPECT_TRUE(write_file((path_ / file).string(), text).ok());
  }
  std::string refusal() const {
    const auto loaded = Catalog::load(path_.string());
    if (loaded.ok()) return "accepted";
    std::string text = loaded.error().text();
    const std::size_t at = text.find(path_.string());
    return at == std::string::npos ? text : text.erase(at, path_.string().size() + 1);
  }

 private:
  fs::path path_;
};

const char* const cluster_head =
    "name: c\nsystem: s\nsources:\n"
    "  sheet: {title: T, address: A, read: 2026-11}\n";

TEST(Catalog, what_is_in_the_binary_is_what_is_in_the_tree) {
  const auto built_in = Catalog::built_in();
  ASSERT_TRUE(built_in.ok()) << built_in.error().text();
  EXPECT_EQ(built_in.value().gpus(), catalog().gpus());
  EXPECT_EQ(built_in.value().systems(), catalog().systems());
  EXPECT_EQ(built_in.value().clusters(), catalog().clusters());
  EXPECT_EQ(built_in.value().engines(), catalog().engines());
  EXPECT_EQ(built_in.value().models(), catalog().models());
}

TEST(Catalog, the_reference_cluster_is_64_racks_of_72_gpus) {
  const auto cluster = catalog().cluster("gb300-64-racks");
  ASSERT_TRUE(cluster.ok()) << cluster.error().text();
  const auto system = catalog().system(cluster.value().system);
  ASSERT_TRUE(system.ok());
  EXPECT_EQ(cluster.value().racks * system.value().gpus_per_rack, 4608);
  EXPECT_EQ(system.value().nvlink_domain, 72);
  EXPECT_EQ(system.value().gpus_per_node, 4);
}

TEST(Catalog, names_are_found_in_any_case_and_the_nearest_is_offered) {
  EXPECT_TRUE(catalog().gpu("gb300").ok());
  EXPECT_TRUE(catalog().system("GB300-nvl72").ok());
  EXPECT_TRUE(catalog().engine("TRTLLM-1.3").ok());
  EXPECT_TRUE(catalog().model("DeepSeek-R1").ok());
  const auto wrong = catalog().gpu("GB30");
  EXPECT_EQ(wrong.error().code, Error::Code::not_found);
  EXPECT_NE(wrong.error().message.find("did you mean \"GB300\"?"), std::string::npos);
}

TEST(Catalog, every_figure_has_a_source_or_a_reason) {
  int figures = 0, assumed = 0;
  for (const auto& names : {catalog().gpus(), catalog().systems(), catalog().clusters(),
                            catalog().engines(), catalog().models()})
    for (const std::string& name : names) {
      EXPECT_FALSE(catalog().figures(name).empty()) << name;
      for (const Figure& figure : catalog().figures(name)) {
        ++figures;
        if (figure.origin == Origin::assumed) {
          EXPECT_GT(figure.note.size(), 20u) << name << " " << figure.key;
          ++assumed;
        } else {
          EXPECT_NE(figure.source.find("https://"), std::string::npos) << name << figure.key;
          EXPECT_EQ(figure.read.size(), 7u) << name << " " << figure.key;
        }
      }
    }
  EXPECT_GT(figures, 200);
  EXPECT_LT(assumed, figures / 4);
}

TEST(Gpus, peaks_double_as_the_format_halves) {
  for (const std::string& name : catalog().gpus()) {
    const Gpu gpu = catalog().gpu(name).value();
    const double bf16 = gpu.peak_dense.at(Format::bf16).in(unit::TFLOPS);
    if (const auto fp8 = gpu.peak_dense.find(Format::fp8); fp8 != gpu.peak_dense.end()) {
      EXPECT_NEAR(fp8->second.in(unit::TFLOPS) / bf16, 2, 0.02) << name;
    }
    // FP4 runs at twice FP8 on Blackwell and at about three times on Blackwell Ultra; a ratio
    // of four to FP8 would be the sparse headline.
    if (const auto fp4 = gpu.peak_dense.find(Format::nvfp4); fp4 != gpu.peak_dense.end()) {
      const double ratio = fp4->second.in(unit::TFLOPS) / bf16;
      EXPECT_GE(ratio, 4) << name;
      EXPECT_LE(ratio, 6.3) << name;
    }
  }
  EXPECT_EQ(catalog().gpu("GB300").value().peak_dense.at(Format::nvfp4).in(unit::PFLOPS), 15);
}

TEST(Gpus, are_within_what_was_ever_built) {
  for (const std::string& name : catalog().gpus()) {
    const Gpu gpu = catalog().gpu(name).value();
    EXPECT_GE(gpu.hbm_capacity.in(unit::GB), 79) << name;
    EXPECT_LE(gpu.hbm_capacity.in(unit::GB), 300) << name;
    EXPECT_GE(gpu.hbm_bandwidth.in(unit::TBps), 2) << name;
    EXPECT_LE(gpu.hbm_bandwidth.in(unit::TBps), 8) << name;
    // One direction: 300, 450 and 900 GB/s are NVLink 3, 4 and 5.
    const double nvlink = gpu.nvlink_bandwidth.in(unit::GBps);
    EXPECT_TRUE(nvlink == 300 || nvlink == 450 || nvlink == 900) << name;
    EXPECT_GE(gpu.max_power.in(unit::watt), 400) << name;
    EXPECT_LE(gpu.max_power.in(unit::watt), 1400) << name;
    // Reading all of HBM takes 20 to 50 ms on every part.
    const Seconds sweep = gpu.hbm_capacity / gpu.hbm_bandwidth;
    EXPECT_GT(sweep.in(unit::ms), 20) << name;
    EXPECT_LT(sweep.in(unit::ms), 50) << name;
  }
  EXPECT_DOUBLE_EQ(catalog().gpu("GB300").value().hbm_capacity.in(unit::MiB), 284208);
}

TEST(Systems, fit_their_gpus) {
  for (const std::string& name : catalog().systems()) {
    const System system = catalog().system(name).value();
    const Gpu gpu = catalog().gpu(system.gpu).value();
    EXPECT_EQ(system.gpus_per_rack % system.gpus_per_node, 0) << name;
    EXPECT_GT(gpu.nvlink_bandwidth, system.nic_bandwidth) << name;
    EXPECT_GT(gpu.hbm_bandwidth, system.host_bandwidth) << name;
    EXPECT_GT(system.host_bandwidth, system.nvme_bandwidth) << name;
    EXPECT_LT(system.nvlink_latency, system.nic_latency) << name;
    EXPECT_GT(system.nvme_capacity, system.host_memory) << name;
  }
  EXPECT_DOUBLE_EQ(catalog().system("GB300-NVL72").value().nic_bandwidth.in(unit::GBps), 100);
  EXPECT_DOUBLE_EQ(catalog().system("GB200-NVL72").value().nic_bandwidth.in(unit::GBps), 50);
}

TEST(Engines, have_rules_that_can_run) {
  for (const std::string& name : catalog().engines()) {
    const Engine engine = catalog().engine(name).value();
    EXPECT_GE(engine.max_batch_tokens, engine.max_sequences) << name;
    EXPECT_FALSE(engine.graph_sizes.empty()) << name;
    EXPECT_LT(engine.step_overhead.in(unit::ms), 5) << name;
    EXPECT_EQ(engine.reserve_full_output, engine.batching == Batching::trtllm) << name;
    EXPECT_EQ(engine.memory_basis == MemoryBasis::of_free, engine.batching == Batching::trtllm);
  }
  EXPECT_EQ(catalog().engine("trtllm-1.3").value().block_tokens, 32);
  EXPECT_EQ(catalog().engine("vllm-0.2x").value().block_tokens, 16);
}

TEST(Files, a_figure_without_a_source_does_not_load) {
  const Folder folder("no_source");
  folder.add("clusters/c.yaml",
             std::string(cluster_head) + "racks: {value: 3, origin: measured}\n");
  EXPECT_EQ(folder.refusal(),
            "clusters/c.yaml:5:8: racks has no source: a figure needs one, or is `assumed` with a "
            "note that says why");
  folder.add("clusters/c.yaml", std::string(cluster_head) + "racks: {value: 3, origin: assumed}\n");
  EXPECT_EQ(folder.refusal(), "clusters/c.yaml:5:8: racks is assumed: a note must say why");
  folder.add("clusters/c.yaml",
             std::string(cluster_head) + "racks: {value: 3, origin: datasheet, source: shet}\n");
  EXPECT_EQ(
      folder.refusal(),
      "clusters/c.yaml:5:46: unknown source \"shet\"; did you mean \"sheet\"? (known: sheet)");
  folder.add("clusters/c.yaml", std::string(cluster_head) + "racks: 3\n");
  EXPECT_EQ(folder.refusal(), "clusters/c.yaml:5:8: racks needs a mapping, found \"3\"");
  folder.add("clusters/c.yaml",
             std::string(cluster_head) + "racks: {value: 0, origin: datasheet, source: sheet}\n");
  EXPECT_EQ(folder.refusal(), "clusters/c.yaml:5:16: value must be from 1 to 1000000, found \"0\"");
}

TEST(Files, a_mistake_is_refused_at_its_place) {
  const Folder folder("mistakes");
  const std::string good =
      std::string(cluster_head) + "racks: {value: 3, origin: datasheet, source: sheet}\n";
  folder.add("clusters/c.yaml", good + "rack: 1\n");
  EXPECT_EQ(folder.refusal(),
            "clusters/c.yaml:6:1: unknown key \"rack\"; did you mean \"racks\"? (known: name, "
            "racks, sources, system)");
  folder.add("clusters/c.yaml", good);
  EXPECT_EQ(folder.refusal(), "cluster c: unknown system \"s\" (known: )");
  const Folder other("stem");
  other.add("clusters/d.yaml", good);
  EXPECT_EQ(other.refusal(), "clusters/d.yaml: the file is named \"d\", what it holds \"c\"");
  EXPECT_FALSE(Catalog::load("/nowhere/at/all").ok());
}

TEST(Files, a_model_needs_its_base_and_a_shape_that_can_be) {
  const Folder folder("models");
  const std::string head =
      "sources: {s: {title: T, address: A, read: 2026-11}}\n"
      "shape: {origin: datasheet, source: s}\n";
  folder.add("models/a.yaml", "name: a\nbase: b\n" + head);
  folder.add("models/b.yaml", "name: b\nbase: a\n" + head);
  EXPECT_EQ(folder.refusal(), "models/a.yaml:2:7: there is no model \"b\" to be the base");
  folder.add("models/b.yaml",
             "name: b\n" + head +
                 "hidden: 64\nvocabulary: 9\nmax_position: 9\nlayers:\n"
                 "  - count: 2\n    attention: {heads: 3, kv_heads: 2, head_dim: 4}\n"
                 "    ffn: {intermediate: 8}\n");
  EXPECT_EQ(folder.refusal(), "models/b.yaml:1:1: 3 heads cannot share 2 kv heads evenly");
}

}  // namespace
}  // namespace racktwin::catalog
