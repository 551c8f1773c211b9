#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "catalog/catalog.hpp"
#include "cli/catalog_text.hpp"
#include "cli/overrides.hpp"
#include "cli/verbs.hpp"

namespace racktwin::cli {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kinds = {"list", "gpu", "system", "cluster", "engine", "model"};

std::vector<std::string> names_of(const catalog::Catalog& catalog, std::string_view kind) {
  if (kind == "gpu") return catalog.gpus();
  if (kind == "system") return catalog.systems();
  if (kind == "cluster") return catalog.clusters();
  if (kind == "engine") return catalog.engines();
  return catalog.models();
}

Json json_of(const catalog::Gpu& gpu) {
  Json peaks = Json::object();
  for (const auto& [format, peak] : gpu.peak_dense)
    peaks[std::string(numerics::info(format).name)] = peak.in(unit::TFLOPS);
  return {{"name", gpu.name},
          {"peak_dense_tflops", peaks},
          {"hbm_capacity_gb", gpu.hbm_capacity.in(unit::GB)},
          {"hbm_bandwidth_gb_per_s", gpu.hbm_bandwidth.in(unit::GBps)},
          {"nvlink_bandwidth_gb_per_s", gpu.nvlink_bandwidth.in(unit::GBps)},
          {"max_power_w", gpu.max_power.in(unit::watt)}};
}

Json json_of(const catalog::System& system) {
  return {{"name", system.name},
          {"gpu", system.gpu},
          {"gpus_per_node", system.gpus_per_node},
          {"nvlink_domain", system.nvlink_domain},
          {"gpus_per_rack", system.gpus_per_rack},
          {"nic_bandwidth_gb_per_s", system.nic_bandwidth.in(unit::GBps)},
          {"nic_latency_us", system.nic_latency.in(unit::us)},
          {"nvlink_latency_us", system.nvlink_latency.in(unit::us)},
          {"host_memory_gb", system.host_memory.in(unit::GB)},
          {"host_bandwidth_gb_per_s", system.host_bandwidth.in(unit::GBps)},
          {"nvme_capacity_gb", system.nvme_capacity.in(unit::GB)},
          {"nvme_bandwidth_gb_per_s", system.nvme_bandwidth.in(unit::GBps)}};
}

Json json_of(const catalog::Cluster& cluster) {
  return {{"name", cluster.name}, {"system", cluster.system}, {"racks", cluster.racks}};
}

Json json_of(const catalog::Engine& engine) {
  constexpr std::string_view batching[] = {"vllm_v1", "trtllm", "sglang"};
  constexpr std::string_view basis[] = {"of_total", "of_free"};
  return {{"name", engine.name},
          {"batching", batching[static_cast<std::size_t>(engine.batching)]},
          {"block_tokens", engine.block_tokens},
          {"memory_fraction", engine.memory_fraction},
          {"memory_basis", basis[static_cast<std::size_t>(engine.memory_basis)]},
          {"reserved_gb", engine.reserved.in(unit::GB)},
          {"max_sequences", engine.max_sequences},
          {"max_batch_tokens", engine.max_batch_tokens},
          {"chunked_prefill", engine.chunked_prefill},
          {"reserve_full_output", engine.reserve_full_output},
          {"step_overhead_us", engine.step_overhead.in(unit::us)},
          {"sequence_overhead_us", engine.sequence_overhead.in(unit::us)},
          {"request_overhead_ms", engine.request_overhead.in(unit::ms)},
          {"overlap_scheduling", engine.overlap_scheduling},
          {"graph_sizes", engine.graph_sizes}};
}

// Whole where it is: 36864, not 36864.0.
Json number(double value) {
  return value == std::floor(value) && std::abs(value) < 9e15
             ? Json(static_cast<std::int64_t>(value))
             : Json(value);
}

Json json_of(const catalog::LayerGroup& group) {
  const catalog::Attention& a = group.attention;
  Json json = {{"count", group.count},
               {"attention", attention_name(a)},
               {"heads", a.heads},
               {"kv_heads", a.kv_heads},
               {"head_dim", a.head_dim},
               {"window", a.window ? Json(*a.window) : Json(nullptr)},
               {"kv_bytes_per_token", number(catalog::kv_bytes_per_token(a))},
               {"kv_format", numerics::info(a.kv).name},
               {"attention_format", numerics::info(a.weights).name},
               {"ffn_intermediate", group.ffn.intermediate},
               {"ffn_format", numerics::info(group.ffn.weights).name},
               {"experts", nullptr}};
  if (const auto& e = group.ffn.experts)
    json["experts"] = {{"routed", e->routed},
                       {"active", e->active},
                       {"intermediate", e->intermediate},
                       {"shared", e->shared},
                       {"format", numerics::info(e->weights).name}};
  return json;
}

Json json_of(const catalog::Model& model) {
  const catalog::Parameters counted = catalog::parameters(model);
  const catalog::PublishedCount comparable = catalog::counted_as_published(model);
  const ModelFacts facts = facts_of(model);
  Json groups = Json::array();
  for (const catalog::LayerGroup& group : model.layers) groups.push_back(json_of(group));
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json json = {{"name", model.name},
               // As the publisher of the model counts, so that the two can be compared.
               {"total_params", comparable.total},
               {"active_params", comparable.active},
               {"kv_bytes_per_token", number(catalog::kv_bytes_per_token(model))},
               {"layers", model.layer_count()},
               {"attention", facts.attention},
               {"experts", nullptr},
               {"published_total_params", optional(model.published_total)},
               {"published_active_params", optional(model.published_active)},
               {"mtp_params", counted.mtp},
               {"kv_bytes_per_token_within_window",
                number(catalog::kv_bytes_per_token_within_window(model))},
               {"state_bytes_per_sequence", number(catalog::state_bytes_per_sequence(model))},
               {"hidden", model.hidden},
               {"vocabulary", model.vocabulary},
               {"max_position", model.max_position},
               {"formats", facts.formats},
               {"layer_groups", groups},
               {"notes", model.notes},
               {"source", model.source}};
  for (const Json& group : groups)
    if (!group["experts"].is_null()) json["experts"] = group["experts"];
  return json;
}

Json json_of(const std::vector<catalog::Figure>& figures) {
  Json rows = Json::array();
  for (const catalog::Figure& figure : figures)
    rows.push_back({{"key", figure.key},
                    {"value", figure.value},
                    {"origin", name(figure.origin)},
                    {"source", figure.source},
                    {"read", figure.read},
                    {"note", figure.note}});
  return rows;
}

std::string dumped(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string list(const catalog::Catalog& catalog, const std::string& kind, bool as_json) {
  Json json = Json::object();
  std::string text;
  for (const std::string& each : kinds) {
    if (each == "list" || (kind != "list" && each != kind)) continue;
    const std::vector<std::string> names = names_of(catalog, each);
    json[each + "s"] = names;
    text += wrapped(fmt::format("{:<9} ", each + "s"), names);
  }
  return as_json ? dumped(json) : text;
}

}  // namespace

Result<int> catalog_verb(const CatalogCommand& command, const Console& console) {
  const std::string& kind = command.kind;
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
    return Error{Error::Code::invalid_input, unknown_name("kind", kind, kinds), "catalog"};
  if (kind == "list" && command.name)
    return Error{Error::Code::invalid_input,
                 fmt::format("list takes no name, found \"{}\"", *command.name), "catalog"};
  RACKTWIN_TRY(const catalog::Catalog catalog, catalog::Catalog::built_in());
  const auto show = [&](Json json, std::string_view title, const std::string& body) -> Result<int> {
    const auto figures = catalog.figures(title);
    json["figures"] = json_of(figures);
    RACKTWIN_TRY_DONE(print(console, command.json ? dumped(json) : body + figure_table(figures)));
    return exit_done;
  };
  if (!command.name) {
    RACKTWIN_TRY_DONE(print(console, list(catalog, kind, command.json)));
    return exit_done;
  }
  if (kind == "model") {
    RACKTWIN_TRY(const catalog::Model model, catalog.model(*command.name));
    return show(json_of(model), model.name, model_text(model));
  }
  const auto shown = [&](auto found) -> Result<int> {
    if (!found.ok()) return std::move(found).error();
    return show(json_of(found.value()), found.value().name, found.value().name + "\n");
  };
  if (kind == "gpu") return shown(catalog.gpu(*command.name));
  if (kind == "system") return shown(catalog.system(*command.name));
  if (kind == "cluster") return shown(catalog.cluster(*command.name));
  return shown(catalog.engine(*command.name));
}

}  // namespace racktwin::cli
