// SPDX-License-Identifier: Apache-2.0
#include "rdma/handles.h"

#include "base/logging.h"
#include "base/status_macros.h"

namespace purser::rdma {

void LogDestroyFailure(const absl::Status& status) {
  base::LogError("RDMA object not destroyed; its memory stays allocated",
                 {{"status", status}});
}

absl::StatusOr<Context> OpenDevice(Verbs& verbs, const std::string& name) {
  PURSER_ASSIGN_OR_RETURN(ibv_context * context, verbs.OpenDevice(name));
  return Context(context, {&verbs});
}

absl::StatusOr<ProtectionDomain> AllocPd(Verbs& verbs, const Context& context) {
  PURSER_ASSIGN_OR_RETURN(ibv_pd * pd, verbs.AllocPd(context.get()));
  return ProtectionDomain(pd, {&verbs});
}

absl::StatusOr<CompletionChannel> CreateCompChannel(Verbs& verbs,
                                                    const Context& context) {
  PURSER_ASSIGN_OR_RETURN(ibv_comp_channel * channel,
                          verbs.CreateCompChannel(context.get()));
  return CompletionChannel(channel, {&verbs});
}

absl::StatusOr<CompletionQueue> CreateCq(Verbs& verbs, const Context& context,
                                         int cqe, void* cq_context,
                                         const CompletionChannel& channel) {
  PURSER_ASSIGN_OR_RETURN(
      ibv_cq * cq,
      verbs.CreateCq(context.get(), cqe, cq_context, channel.get()));
  return CompletionQueue(cq, {&verbs});
}

absl::StatusOr<MemoryRegion> RegMr(Verbs& verbs, const ProtectionDomain& pd,
                                   void* addr, size_t length, int access) {
  PURSER_ASSIGN_OR_RETURN(ibv_mr * mr,
                          verbs.RegMr(pd.get(), addr, length, access));
  return MemoryRegion(mr, {&verbs});
}

absl::StatusOr<SharedReceiveQueue> CreateSrq(Verbs& verbs,
                                             const ProtectionDomain& pd,
                                             ibv_srq_init_attr& attr) {
  PURSER_ASSIGN_OR_RETURN(ibv_srq * srq, verbs.CreateSrq(pd.get(), &attr));
  return SharedReceiveQueue(srq, {&verbs});
}

absl::StatusOr<QueuePair> CreateQp(Verbs& verbs, const ProtectionDomain& pd,
                                   ibv_qp_init_attr& attr,
                                   uint64_t send_ops_flags) {
  PURSER_ASSIGN_OR_RETURN(ibv_qp * qp,
                          verbs.CreateQp(pd.get(), &attr, send_ops_flags));
  return QueuePair(qp, {&verbs});
}

}  // namespace purser::rdma
