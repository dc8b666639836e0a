// SPDX-License-Identifier: Apache-2.0
//
// The verbs seam: what Purser calls of libibverbs, with libibverbs' four error
// conventions turned into one. Everything above works on this interface; the
// real one is LibibverbsVerbs() and the tests' is a stateful fake whose
// ibv_context and ibv_qp structs are real, so that the verbs that are inline
// functions (ibv_post_send, ibv_poll_cq, …) work on both.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace purser::rdma {

// Errors are StatusOf(errno, "ibv_… <device>"); ErrnoOf() gives the errno back.
class Verbs {
 public:
  virtual ~Verbs() = default;

  // Names of the RDMA devices that this process can see.
  virtual absl::StatusOr<std::vector<std::string>> DeviceNames() = 0;
  // NotFound lists the devices there are. The asynchronous event descriptor is
  // non-blocking.
  virtual absl::StatusOr<ibv_context*> OpenDevice(const std::string& name) = 0;
  virtual absl::Status CloseDevice(ibv_context* context) = 0;

  virtual absl::StatusOr<ibv_device_attr> QueryDevice(ibv_context* context) = 0;
  virtual absl::StatusOr<ibv_port_attr> QueryPort(ibv_context* context,
                                                  uint8_t port_num) = 0;
  virtual absl::StatusOr<ibv_gid> QueryGid(ibv_context* context,
                                           uint8_t port_num, int gid_index) = 0;

  virtual absl::StatusOr<ibv_pd*> AllocPd(ibv_context* context) = 0;
  virtual absl::Status DeallocPd(ibv_pd* pd) = 0;
  virtual absl::StatusOr<ibv_comp_channel*> CreateCompChannel(
      ibv_context* context) = 0;
  virtual absl::Status DestroyCompChannel(ibv_comp_channel* channel) = 0;
  virtual absl::StatusOr<ibv_cq*> CreateCq(ibv_context* context, int cqe,
                                           void* cq_context,
                                           ibv_comp_channel* channel) = 0;
  virtual absl::Status DestroyCq(ibv_cq* cq) = 0;
  // To at least `cqe` entries; cq->cqe is then what it has. What is in it
  // stays, and so does a requested notification. Where this fails it is as it
  // was. Not beside a poll of the same queue.
  virtual absl::Status ResizeCq(ibv_cq* cq, int cqe) = 0;
  virtual absl::StatusOr<ibv_mr*> RegMr(ibv_pd* pd, void* addr, size_t length,
                                        int access) = 0;
  virtual absl::Status DeregMr(ibv_mr* mr) = 0;
  // Writes the granted capacities back to `attr->attr`.
  virtual absl::StatusOr<ibv_srq*> CreateSrq(ibv_pd* pd,
                                             ibv_srq_init_attr* attr) = 0;
  virtual absl::Status DestroySrq(ibv_srq* srq) = 0;
  // Writes the granted capacities back to `attr->cap`. `send_ops_flags`: bits
  // of ibv_qp_create_send_ops_flags, of all that will be posted
  // (ibv_create_qp_ex; classic posting works all the same); 0: any, by plain
  // ibv_create_qp. EOPNOTSUPP from providers that do not take them.
  virtual absl::StatusOr<ibv_qp*> CreateQp(ibv_pd* pd, ibv_qp_init_attr* attr,
                                           uint64_t send_ops_flags) = 0;
  virtual absl::Status ModifyQp(ibv_qp* qp, ibv_qp_attr* attr,
                                int attr_mask) = 0;
  virtual absl::Status QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask,
                               ibv_qp_init_attr* init_attr) = 0;
  virtual absl::Status DestroyQp(ibv_qp* qp) = 0;

  // The data path goes through ibv_context::ops, as in libibverbs; not virtual.
  // OK, or the errno with `*bad_wr` set to the first request that was not
  // posted. Post no send before RTS: soft-RoCE answers EINVAL with a null
  // `*bad_wr`, keeps the requests all the same and sends them at RTS.
  int PostSend(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
    return ibv_post_send(qp, wr, bad_wr);
  }
  int PostRecv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
    return ibv_post_recv(qp, wr, bad_wr);
  }
  int PostSrqRecv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
    return ibv_post_srq_recv(srq, wr, bad_wr);
  }
  int PollCq(ibv_cq* cq, int max_entries, ibv_wc* completions) {
    return ibv_poll_cq(cq, max_entries, completions);
  }
  int ReqNotifyCq(ibv_cq* cq, bool solicited_only) {
    return ibv_req_notify_cq(cq, solicited_only);
  }
  // The next completion event of a channel; nullptr when there is none (the
  // descriptor is non-blocking).
  virtual absl::StatusOr<ibv_cq*> GetCqEvent(ibv_comp_channel* channel) = 0;
  virtual void AckCqEvents(ibv_cq* cq, unsigned int count) = 0;
  // The next asynchronous event; false when there is none. Acknowledge each.
  virtual absl::StatusOr<bool> GetAsyncEvent(ibv_context* context,
                                             ibv_async_event* event) = 0;
  virtual void AckAsyncEvent(ibv_async_event* event) = 0;
};

// The real one. One for the process; it has no state.
Verbs& LibibverbsVerbs();

// The status of an errno, which it carries along: "ibv_alloc_pd mlx5_0: ENOMEM:
// Cannot allocate memory". OK for 0.
absl::Status StatusOf(int error_number, std::string_view what);
// The errno that a status of this seam was made from; 0 for OK, EIO where it
// carries none.
int ErrnoOf(const absl::Status& status);
// "ENOMEM"; "errno 4711" where the number has no name.
std::string ErrnoName(int error_number);

}  // namespace purser::rdma
