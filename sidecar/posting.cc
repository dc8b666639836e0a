// SPDX-License-Identifier: Apache-2.0
#include "sidecar/posting.h"

#include <arpa/inet.h>

#include <cerrno>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "rdma/queue_pair_states.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

using SgList = google::protobuf::RepeatedPtrField<v1::Sge>;

// Translates the scatter/gather lists of one call and keeps their regions
// registered until its end.
class SgeTranslator {
 public:
  SgeTranslator(const std::string& client_id, const Regions& regions,
                const Device& device, uint32_t max_sge, int max_requests)
      : client_id_(client_id),
        regions_(regions),
        device_(device),
        max_sge_(max_sge) {
    sges_.reserve(size_t{max_sge} * static_cast<size_t>(max_requests));
  }

  // The entries of one request.
  absl::StatusOr<std::span<ibv_sge>> Translate(const SgList& list) {
    const size_t begin = sges_.size();
    for (const v1::Sge& sge : list) {
      PURSER_ASSIGN_OR_RETURN(const Region* region, Find(sge.region_id()));
      PURSER_ASSIGN_OR_RETURN(const ibv_sge translated,
                              SgeOf(*region, sge.offset(), sge.length()));
      if (translated.length == 0) continue;  // mlx5 reads 0 as 2^31
      if (sges_.size() - begin == max_sge_)
        return absl::InvalidArgumentError(
            fmt::format("sg_list has {} entries; the queue pair takes {}",
                        list.size(), max_sge_));
      sges_.push_back(translated);
    }
    return std::span(sges_).subspan(begin);
  }

 private:
  absl::StatusOr<const Region*> Find(uint64_t region_id) {
    std::shared_ptr<const Region>& region = found_[region_id];
    if (region != nullptr) return region.get();
    PURSER_ASSIGN_OR_RETURN(region, regions_.Find(client_id_, region_id));
    if (region->device->name() != device_.name())
      return absl::InvalidArgumentError(fmt::format(
          "memory region {} is registered with {}, the queue pair is on {}",
          region_id, region->device->name(), device_.name()));
    return region.get();
  }

  const std::string& client_id_;
  const Regions& regions_;
  const Device& device_;
  const uint32_t max_sge_;
  std::vector<ibv_sge> sges_;  // never reallocates: requests point into it
  std::map<uint64_t, std::shared_ptr<const Region>> found_;
};

struct Unposted {
  int error_number = 0;  // 0: none
  std::string message;
};

Unposted CheckOperation(v1::SendOpcode opcode, ibv_qp_type type) {
  if (!v1::SendOpcode_IsValid(opcode))
    return {EINVAL,
            fmt::format("opcode {} is none of SendOpcode", int{opcode})};
  if (type == IBV_QPT_UD)
    return {EOPNOTSUPP,
            "sends of UD queue pairs need an address handle, which this API "
            "does not have"};
  if (opcode == v1::SEND_OPCODE_RDMA_READ && type != IBV_QPT_RC)
    return {EINVAL, fmt::format("a {} queue pair has no RDMA READ",
                                rdma::QueuePairTypeName(type))};
  return {};
}

ibv_send_wr SendRequestOf(const v1::SendWorkRequest& from,
                          std::span<ibv_sge> sges) {
  ibv_send_wr to{.wr_id = from.wr_id(),
                 .sg_list = sges.data(),
                 .num_sge = static_cast<int>(sges.size()),
                 .opcode = static_cast<ibv_wr_opcode>(from.opcode())};
  if (from.fence()) to.send_flags |= IBV_SEND_FENCE;
  if (from.solicited()) to.send_flags |= IBV_SEND_SOLICITED;
  to.imm_data = htonl(from.imm_data());
  to.wr.rdma.remote_addr = from.remote_addr();
  to.wr.rdma.rkey = from.rkey();
  return to;
}

// To a work queue or a shared receive queue.
template <typename Queue>
PostResult PostReceivesTo(const v1::PostReceiveRequest& request,
                          const Regions& regions, const Device& device,
                          uint32_t max_sge, Queue& queue) {
  SgeTranslator translator(request.client_id(), regions, device, max_sge,
                           request.work_requests_size());
  std::vector<ibv_recv_wr> requests;
  requests.reserve(static_cast<size_t>(request.work_requests_size()));
  std::string wrong;
  for (const v1::ReceiveWorkRequest& from : request.work_requests()) {
    absl::StatusOr<std::span<ibv_sge>> sges =
        translator.Translate(from.sg_list());
    if (!sges.ok()) {
      wrong = std::string(sges.status().message());
      break;
    }
    requests.push_back({.wr_id = from.wr_id(),
                        .sg_list = sges->data(),
                        .num_sge = static_cast<int>(sges->size())});
  }
  PostResult result = queue.PostReceive(requests);
  if (result.error_number != 0 || wrong.empty()) return result;
  return queue.RefuseReceive(result.posted, EINVAL, std::move(wrong));
}

}  // namespace

PostResult PostSends(const v1::PostSendRequest& request, const Regions& regions,
                     BrokeredQueuePair& queue_pair) {
  const BrokeredQueuePair::Facts& facts = queue_pair.facts();
  SgeTranslator translator(request.client_id(), regions, *facts.device,
                           facts.shape->cap.max_send_sge,
                           request.work_requests_size());
  std::vector<ibv_send_wr> requests;
  requests.reserve(static_cast<size_t>(request.work_requests_size()));
  Unposted unposted;
  for (const v1::SendWorkRequest& from : request.work_requests()) {
    unposted = CheckOperation(from.opcode(), facts.shape->type);
    if (unposted.error_number != 0) break;
    absl::StatusOr<std::span<ibv_sge>> sges =
        translator.Translate(from.sg_list());
    if (!sges.ok()) {
      unposted = {EINVAL, std::string(sges.status().message())};
      break;
    }
    requests.push_back(SendRequestOf(from, *sges));
  }
  PostResult result = queue_pair.work_queue().PostSend(requests);
  if (result.error_number != 0 || unposted.error_number == 0) return result;
  return queue_pair.work_queue().RefuseSend(
      result.posted, unposted.error_number, std::move(unposted.message));
}

PostResult PostReceives(const v1::PostReceiveRequest& request,
                        const Regions& regions, BrokeredQueuePair& queue_pair) {
  const BrokeredQueuePair::Facts& facts = queue_pair.facts();
  return PostReceivesTo(request, regions, *facts.device,
                        facts.shape->cap.max_recv_sge, queue_pair.work_queue());
}

PostResult PostReceives(const v1::PostReceiveRequest& request,
                        const Regions& regions,
                        BrokeredSharedReceiveQueue& queue) {
  const BrokeredSharedReceiveQueue::Facts& facts = queue.facts();
  return PostReceivesTo(request, regions, *facts.device, facts.attr.max_sge,
                        queue);
}

}  // namespace purser::sidecar
