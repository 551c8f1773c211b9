// Id<Tag>: an index that cannot be mistaken for an index into another table.
#pragma once

#include <compare>
#include <cstdint>

namespace racktwin {

template <class Tag>
struct Id {
  std::uint32_t index = 0;
  friend constexpr auto operator<=>(Id, Id) = default;
};

using GpuId = Id<struct GpuTag>;
using LinkId = Id<struct LinkTag>;
using PoolId = Id<struct PoolTag>;
using ReplicaId = Id<struct ReplicaTag>;
using RequestId = Id<struct RequestTag>;
using SessionId = Id<struct SessionTag>;

}  // namespace racktwin
