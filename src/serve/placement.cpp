#include "serve/placement.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace racktwin::serve {
namespace {

struct Wish {
  std::size_t replica;  // index into the result
  int gpus, domain;     // size; where it would like to be
};

// Each wish in turn into the domain it asks for, or the next one with room.
Result<std::vector<GpuId>> first_fit(const std::vector<Wish>& wishes, int domain, int domains) {
  std::vector<int> used(static_cast<std::size_t>(domains), 0);
  std::vector<GpuId> first(wishes.size());
  const auto fits = [&](int d, int size) {
    if (size <= domain) return used[static_cast<std::size_t>(d)] + size <= domain;
    const int whole = (size + domain - 1) / domain;
    if (d + whole > domains) return false;
    return std::all_of(used.begin() + d, used.begin() + d + whole, [](int u) { return u == 0; });
  };
  for (const Wish& wish : wishes) {
    int d = wish.domain;
    int tried = 0;
    while (tried < domains && !fits(d, wish.gpus)) {
      d = (d + 1) % domains;
      ++tried;
    }
    if (tried == domains)
      return Error{
          Error::Code::unsupported,
          fmt::format("no NVLink domain of {} GPUs has room for a replica of {} beside the "
                      "others: they do not divide over {} domains",
                      domain, wish.gpus, domains),
          "pools"};
    first[wish.replica] =
        GpuId{static_cast<std::uint32_t>(d * domain + used[static_cast<std::size_t>(d)])};
    for (int left = wish.gpus, e = d; left > 0; ++e) {
      const int part = std::min(left, domain);
      used[static_cast<std::size_t>(e)] += part;
      left -= part;
    }
  }
  return first;
}

}  // namespace

Result<std::vector<GpuId>> place(const Deployment& deployment, int gpus, int domain) {
  const int domains = gpus / domain;
  std::vector<Wish> wishes;
  std::int64_t asked = 0;
  for (const Pool& pool : deployment.pools) {
    for (int j = 0; j < pool.replicas; ++j) {
      const int size = pool.parallelism.gpus();
      const int wanted = deployment.placement == Placement::packed
                             ? 0
                             : static_cast<int>(std::int64_t{j} * domains / pool.replicas);
      wishes.push_back({wishes.size(), size, wanted});
      asked += size;
    }
  }
  if (asked > gpus)
    return Error{Error::Code::unsupported,
                 fmt::format("the pools need {} GPUs and the cluster has {}", asked, gpus),
                 "pools"};
  if (deployment.placement == Placement::spread)
    std::stable_sort(wishes.begin(), wishes.end(),
                     [](const Wish& a, const Wish& b) { return a.domain < b.domain; });

  auto placed = first_fit(wishes, domain, domains);
  if (!placed.ok()) {
    // Small ones may have taken a place in every domain: the largest first.
    std::stable_sort(wishes.begin(), wishes.end(),
                     [](const Wish& a, const Wish& b) { return a.gpus > b.gpus; });
    placed = first_fit(wishes, domain, domains);
  }
  return placed;
}

}  // namespace racktwin::serve
