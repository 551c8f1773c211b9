// What the catalogue knows, for people to read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.hpp"

namespace racktwin::cli {

// "latent", "sparse latent", "grouped query", "sliding window", ...
std::string attention_name(const catalog::Attention&);

struct ModelFacts {
  std::string attention;             // the kinds that occur, joined by " + "
  std::vector<std::string> formats;  // of weights, the kinds that occur
};
ModelFacts facts_of(const catalog::Model&);

std::string model_text(const catalog::Model&);

// The names after `head`, in lines of at most 100 columns that stand below one another.
std::string wrapped(std::string_view head, const std::vector<std::string>& names);

// Key, value, where it is from; a line each.
std::string figure_table(const std::vector<catalog::Figure>&);

}  // namespace racktwin::cli
