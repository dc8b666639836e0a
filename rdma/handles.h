// SPDX-License-Identifier: Apache-2.0
//
// Move-only owners of verbs objects. Each is destroyed through the seam that
// made it; a failing destroy is logged once, with the object's name, and never
// silent. Who has to know whether the object is gone calls Destroy(). Declare
// parents before children (context, pd, channel, cq, srq, qp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rdma/verbs.h"

namespace purser::rdma {

void LogDestroyFailure(const absl::Status& status);

template <typename T, absl::Status (Verbs::*kDestroy)(T*)>
struct VerbsDeleter {
  Verbs* verbs = nullptr;
  void operator()(T* object) const {
    if (absl::Status status = (verbs->*kDestroy)(object); !status.ok())
      LogDestroyFailure(status);
  }
};
template <typename T, absl::Status (Verbs::*kDestroy)(T*)>
using Handle = std::unique_ptr<T, VerbsDeleter<T, kDestroy>>;

using Context = Handle<ibv_context, &Verbs::CloseDevice>;
using ProtectionDomain = Handle<ibv_pd, &Verbs::DeallocPd>;
using CompletionChannel = Handle<ibv_comp_channel, &Verbs::DestroyCompChannel>;
using CompletionQueue = Handle<ibv_cq, &Verbs::DestroyCq>;
using SharedReceiveQueue = Handle<ibv_srq, &Verbs::DestroySrq>;
using MemoryRegion = Handle<ibv_mr, &Verbs::DeregMr>;
using QueuePair = Handle<ibv_qp, &Verbs::DestroyQp>;

// Destroys now. Where that fails the handle still owns the object, so that it
// can be tried again; OK for one that owns nothing.
template <typename T, absl::Status (Verbs::*kDestroy)(T*)>
absl::Status Destroy(Handle<T, kDestroy>& handle) {
  if (handle == nullptr) return absl::OkStatus();
  absl::Status status = (handle.get_deleter().verbs->*kDestroy)(handle.get());
  if (status.ok()) handle.release();
  return status;
}

absl::StatusOr<Context> OpenDevice(Verbs& verbs, const std::string& name);
absl::StatusOr<ProtectionDomain> AllocPd(Verbs& verbs, const Context& context);
absl::StatusOr<CompletionChannel> CreateCompChannel(Verbs& verbs,
                                                    const Context& context);
absl::StatusOr<CompletionQueue> CreateCq(Verbs& verbs, const Context& context,
                                         int cqe, void* cq_context,
                                         const CompletionChannel& channel);
absl::StatusOr<MemoryRegion> RegMr(Verbs& verbs, const ProtectionDomain& pd,
                                   void* addr, size_t length, int access);
// Writes the granted capacities back to `attr.attr`.
absl::StatusOr<SharedReceiveQueue> CreateSrq(Verbs& verbs,
                                             const ProtectionDomain& pd,
                                             ibv_srq_init_attr& attr);
// Writes the granted capacities back to `attr.cap`. `send_ops_flags` as
// Verbs::CreateQp.
absl::StatusOr<QueuePair> CreateQp(Verbs& verbs, const ProtectionDomain& pd,
                                   ibv_qp_init_attr& attr,
                                   uint64_t send_ops_flags = 0);

}  // namespace purser::rdma
