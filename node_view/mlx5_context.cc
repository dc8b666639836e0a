// SPDX-License-Identifier: Apache-2.0
#include "node_view/mlx5_context.h"

#include <array>

namespace purser::node_view {
namespace {

using rdma::Bytes;

constexpr size_t kDword = 4;
// A resource segment: header, reserved, the resource's number, a second number.
constexpr size_t kIndexOffset = 8, kPayloadOffset = 16;
// The payload is the context, or the answer to QUERY_QP that holds it.
constexpr std::array<size_t, 2> kContextOffsets = {0, 24};
constexpr size_t kContextBytes = 0x40;  // of which is read here
constexpr uint32_t kNumberMask = 0xffffff;
// From here on segments describe the dump.
constexpr uint16_t kLeastControlType = 0xfff0;

uint32_t Dword(Bytes bytes, size_t offset) {
  uint32_t value = 0;
  for (size_t i = 0; i < kDword; ++i)
    value = value << 8 | std::to_integer<uint32_t>(bytes[offset + i]);
  return value;
}

// `count` bits at bit `first`, counted from the most significant.
uint32_t Bits(Bytes bytes, size_t first, size_t count) {
  const uint32_t dword = Dword(bytes, first / 32 * kDword);
  return dword >> (32 - first % 32 - count) & ((1u << count) - 1);
}

// qpc.st of an ib_qp_type; nullopt: another, of which nothing is known.
std::optional<uint32_t> TransportOf(uint8_t ib_type) {
  switch (ib_type) {
    case 2:  // RC
      return 0;
    case 3:  // UC
      return 1;
    case 4:  // UD
      return 2;
    default:
      return std::nullopt;
  }
}

bool Agrees(Bytes context, const rdma::ResourceRecord& queue_pair) {
  const std::optional<uint32_t> transport = TransportOf(queue_pair.type);
  const bool has_pd = Bits(context, 0x28, 24) != 0;
  const bool has_uar = Bits(context, 0x68, 24) != 0;
  const bool same_peer =
      !queue_pair.remote_qpn ||
      Bits(context, 0xa8, 24) == (*queue_pair.remote_qpn & kNumberMask);
  return transport && Bits(context, 0x08, 8) == *transport && has_pd &&
         has_uar && same_peer;
}

Mlx5Rings RingsOf(Bytes context) {
  Mlx5Rings rings;
  const bool no_send_ring = Bits(context, 0x50, 1) != 0;
  if (!no_send_ring) rings.send_bytes = uint64_t{64} << Bits(context, 0x51, 4);
  const uint32_t stride = 16u << Bits(context, 0x4d, 3);
  const uint64_t bytes = uint64_t{stride} << Bits(context, 0x49, 4);
  // The provider makes none smaller: the fields are zero without one.
  constexpr uint64_t kLeastReceiveBytes = 64;
  if (bytes >= kLeastReceiveBytes) {
    rings.receive_bytes = bytes;
    rings.receive_stride = stride;
  }
  return rings;
}

}  // namespace

std::optional<Mlx5Rings> ParseMlx5QueuePair(
    Bytes raw, const rdma::ResourceRecord& queue_pair) {
  std::optional<Mlx5Rings> found;
  while (raw.size() >= kPayloadOffset) {
    const uint32_t header = Dword(raw, 0);
    const size_t length = size_t{header >> 16} * kDword;
    const auto type = static_cast<uint16_t>(header);
    if (length < kDword || length > raw.size()) return std::nullopt;
    const Bytes segment = raw.first(length);
    raw = raw.subspan(length);
    if (type >= kLeastControlType || length < kPayloadOffset ||
        (Dword(segment, kIndexOffset) & kNumberMask) !=
            (queue_pair.local_qpn & kNumberMask))
      continue;
    for (const size_t offset : kContextOffsets) {
      if (segment.size() < kPayloadOffset + offset + kContextBytes) continue;
      const Bytes context = segment.subspan(kPayloadOffset + offset);
      if (!Agrees(context, queue_pair)) continue;
      if (found) return std::nullopt;  // two answers are none
      found = RingsOf(context);
    }
  }
  return found;
}

}  // namespace purser::node_view
