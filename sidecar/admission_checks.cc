// SPDX-License-Identifier: Apache-2.0
#include "sidecar/admission_checks.h"

#include "sidecar/admission_refusal.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {

using queue_memory::QueuePairRequest;

std::optional<Refusal> CheckSense(const std::string& what,
                                  const QueuePairRequest& request) {
  if (request.max_send_wr == 0 && request.max_recv_wr == 0 && !request.uses_srq)
    return InvalidRequest(
        what,
        "max_send_wr and max_recv_wr are both 0, so nothing can be posted",
        "ask for at least one work request on one side");
  if (request.max_send_wr > 0 && request.max_send_sge == 0 &&
      request.max_inline_data == 0)
    return InvalidRequest(what, "max_send_sge is 0, so no send can carry data",
                          "ask for max_send_sge >= 1");
  if (request.max_recv_wr > 0 && request.max_recv_sge == 0 && !request.uses_srq)
    return InvalidRequest(what,
                          "max_recv_sge is 0, so no receive can carry data",
                          "ask for max_recv_sge >= 1");
  return std::nullopt;
}

std::optional<Refusal> CheckDeviceAttributes(const std::string& what,
                                             const DeviceTraits& device,
                                             const QueuePairRequest& request,
                                             uint64_t live_queue_pairs) {
  const queue_memory::DeviceLimits& limits = device.limits;
  if (device.max_qp != 0 && live_queue_pairs >= device.max_qp)
    return OverDeviceLimit(
        what, "queue pair number", live_queue_pairs + 1, "max_qp",
        device.max_qp,
        "destroy queue pairs that are not needed, or use another device");

  struct Check {
    const char* field;
    uint64_t asked;
    const char* limit;
    uint32_t allowed;
  };
  const uint32_t recv_wr = request.uses_srq ? 0 : request.max_recv_wr;
  const uint32_t recv_sge = request.uses_srq ? 0 : request.max_recv_sge;
  for (const Check& check : {
           Check{"max_send_wr", request.max_send_wr, "max_qp_wr",
                 limits.max_qp_wr},
           Check{"max_recv_wr", recv_wr, "max_qp_wr", limits.max_qp_wr},
           Check{"max_send_sge", request.max_send_sge, "max_sge",
                 limits.max_sge},
           Check{"max_recv_sge", recv_sge, "max_sge", limits.max_sge},
       }) {
    if (check.allowed != 0 && check.asked > check.allowed)
      return OverDeviceLimit(
          what, check.field, check.asked, check.limit, check.allowed,
          fmt::format("ask for {} <= {}", check.field, check.allowed));
  }
  // Its one completion queue must take a completion of each.
  const uint64_t completions = uint64_t{request.max_send_wr} + recv_wr;
  if (limits.max_cqe != 0 && completions > limits.max_cqe)
    return OverDeviceLimit(
        what, "max_send_wr + max_recv_wr", completions, "max_cqe",
        limits.max_cqe,
        fmt::format("ask for max_send_wr + max_recv_wr <= {}", limits.max_cqe));
  return std::nullopt;
}

}  // namespace purser::sidecar
