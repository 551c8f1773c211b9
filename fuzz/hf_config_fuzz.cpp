// Any bytes given as a Hugging Face config.json, with the part after a line "---" as the
// hf_quant_config.json beside it: read or refused in one sentence, never a crash or a hang.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "catalog/catalog.hpp"

using namespace racktwin;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view mark = "\n---\n";
  const std::size_t cut = text.find(mark);
  const std::string_view config = text.substr(0, cut);
  const std::string_view quantization =
      cut == std::string_view::npos ? std::string_view() : text.substr(cut + mark.size());

  const auto result = catalog::import_hf_config(config, quantization, "fuzz");
  if (!result.ok()) {
    RACKTWIN_CHECK(!result.error().message.empty() && !result.error().where.empty());
    return 0;
  }
  const catalog::Model& model = result.value();
  const catalog::Parameters count = catalog::parameters(model);
  RACKTWIN_CHECK(count.total > 0 && count.active > 0 && count.active <= count.total);
  RACKTWIN_CHECK(count.total < std::int64_t{2'000'000'000'000'000} && count.mtp >= 0);
  RACKTWIN_CHECK(std::isfinite(catalog::kv_bytes_per_token_within_window(model)));
  RACKTWIN_CHECK(std::isfinite(catalog::state_bytes_per_sequence(model)));
  RACKTWIN_CHECK(catalog::kv_bytes_per_token(model) <=
                 catalog::kv_bytes_per_token_within_window(model));
  return 0;
}
