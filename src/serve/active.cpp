#include "serve/active.hpp"

#include <algorithm>

#include "base/rng.hpp"

namespace racktwin::serve {

ActiveIndex ActiveTable::add(workload::Request&& request) {
  ActiveIndex index = 0;
  if (free_.empty()) {
    index = static_cast<ActiveIndex>(rows_.size());
    RACKTWIN_CHECK(index < (1u << 26));  // the bits that timers keep for it
    rows_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Active& a = rows_[index];
  const std::uint32_t epoch = a.epoch;
  a = Active{};
  a.epoch = epoch + 1;
  a.live = true;
  a.id = request.id;
  a.has_session = request.session.has_value();
  a.session = a.has_session ? request.session->index : 0;
  a.slo_class = request.slo_class;
  a.isl = static_cast<std::int32_t>(request.isl);
  a.osl = static_cast<std::int32_t>(request.osl);
  a.max_tokens = static_cast<std::int32_t>(std::max(request.max_tokens, request.osl));
  a.arrival = request.arrival.ns();
  a.prompt = a.isl;
  if (request.blocks.empty()) return index;
  if (free_prompts_.empty()) {
    a.prompt_index = static_cast<std::uint32_t>(prompts_.size());
    prompts_.emplace_back();
  } else {
    a.prompt_index = free_prompts_.back();
    free_prompts_.pop_back();
  }
  Prompt& prompt = prompts_[a.prompt_index];
  prompt.blocks = std::move(request.blocks);
  prompt.block_tokens = request.block_tokens;
  prompt.names.clear();
  prompt.name_tokens = 0;
  return index;
}

void ActiveTable::remove(ActiveIndex index) {
  Active& a = rows_[index];
  if (a.prompt_index != UINT32_MAX) {
    Prompt& prompt = prompts_[a.prompt_index];
    RACKTWIN_CHECK(prompt.slots.empty() && prompt.source_slots.empty());
    prompt.blocks.clear();
    free_prompts_.push_back(a.prompt_index);
  }
  ++a.epoch;
  a.live = false;
  free_.push_back(index);
}

const std::vector<std::uint64_t>& ActiveTable::names(const Active& a, int block_tokens) {
  static const std::vector<std::uint64_t> nothing;
  Prompt* prompt = this->prompt(a);
  if (prompt == nullptr) return nothing;
  if (prompt->name_tokens == block_tokens) return prompt->names;
  prompt->name_tokens = block_tokens;
  prompt->names.clear();
  const int given = prompt->block_tokens;
  const auto whole = static_cast<std::size_t>(a.isl / block_tokens);  // a partial one is private
  if (given % block_tokens == 0) {
    // Part j of a block is named by the block and j. Prompts that part ways inside a block
    // share none of its parts: what they have in common there is not in the trace.
    const auto parts = static_cast<std::size_t>(given / block_tokens);
    for (std::size_t i = 0; i < whole && i / parts < prompt->blocks.size(); ++i)
      prompt->names.push_back(parts == 1 ? prompt->blocks[i]
                                         : mix(prompt->blocks[i / parts], i % parts));
  } else if (block_tokens % given == 0) {
    // Chained names: the last small block of a large one stands for all before it.
    const auto parts = static_cast<std::size_t>(block_tokens / given);
    for (std::size_t i = 0; i < whole && (i + 1) * parts <= prompt->blocks.size(); ++i)
      prompt->names.push_back(prompt->blocks[(i + 1) * parts - 1]);
  }
  return prompt->names;
}

}  // namespace racktwin::serve
