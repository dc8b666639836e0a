// SPDX-License-Identifier: Apache-2.0
//
// The verbs fake: RDMA devices with state in memory, behind the seam of
// rdma/verbs.h. Its structs are real libibverbs structs whose context->ops
// point here, so ibv_post_send, ibv_post_recv, ibv_poll_cq and
// ibv_req_notify_cq work on them. Connected RC and UC queue pairs move data
// between registered buffers; several FakeVerbs on one fabric reach each other,
// like the processes of several pods.
//
// It answers as soft-RoCE on Linux 6.1 with rdma-core 44 does
// (tests/unit/rdma/verbs_contract_*_test.cc runs on both), with these
// differences on purpose:
//  - CloseDevice with children fails with EBUSY (libibverbs would leak them).
//  - An object destroyed twice or used after its end, or one that is not this
//    fake's, ends the process with a message.
//  - Time does not pass: a retry that must fail fails at once, and one that a
//    peer can still end (not yet in RTR; no receive and rnr_retry 7) waits for
//    it.
//  - What waits in a send queue goes at RTS; soft-RoCE waits for the next post.
//  - A send that was not among the queue pair's send_ops_flags ends the process
//    with a message: on hardware it overwrites its neighbour in the ring.
// Every method may be called from any thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/verbs.h"

namespace purser::fakes {

struct FakePort {
  ibv_port_attr attr{};
  std::vector<ibv_gid> gids;  // by index; all zero: an empty entry
};

// What a provider makes of a request: slots that can be posted, and the
// capacities that it writes back.
struct FakeRings {
  uint32_t send_slots = 0, recv_slots = 0;
  ibv_qp_cap cap{};
};

struct FakeDevice {
  std::string name;
  ibv_device_attr attr{};
  uint32_t max_inline_data = 0;
  std::vector<FakePort> ports;  // port_num 1 first
  // Sets `rings` from what is asked (already within `attr`); an errno refuses.
  // `send_ops_flags`: 0 for plain ibv_create_qp.
  int (*size_queue_pair)(ibv_qp_type type, const ibv_qp_cap& asked,
                         uint64_t send_ops_flags, FakeRings& rings) = nullptr;
  // Entries of a completion queue of which `asked` were asked.
  uint32_t (*size_completion_queue)(uint32_t asked) = nullptr;
  // For one object more than max_qp, max_cq, max_pd or max_mr.
  int too_many_errno = EINVAL;
  // What the specification says where soft-RoCE does otherwise: a slot is free
  // once its completion, or a later one, was polled (not by itself); a send
  // posted before RTS is refused and not kept; receives posted in ERR are
  // flushed; RESET and destruction take the queue pair's completions along;
  // operation errors have the precise status.
  bool hardware = false;
};

// One active Ethernet port, 1024 GIDs, of which 0 is link-local and 1 the
// IPv4-mapped one of `ipv4`, both RoCE v2.
FakeDevice RxeDevice(std::string name = "rxe0",
                     std::string_view ipv4 = "192.0.2.1");
// One active Ethernet port; 0 and 1 link-local, 2 and 3 IPv4-mapped (RoCE v1
// and v2 each).
FakeDevice Mlx5Device(std::string name = "mlx5_0",
                      std::string_view ipv4 = "192.0.2.1");

ibv_gid Ipv4Gid(std::string_view ipv4);  // "192.0.2.1" -> ::ffff:192.0.2.1

// The wire between FakeVerbs: queue-pair numbers and keys are unique on it.
struct VerbsFabric;
std::shared_ptr<VerbsFabric> NewFabric();

enum class Removal {
  // Hardware: DEVICE_FATAL, then EIO from every call but those that destroy
  // (with RDMAV_ALLOW_DISASSOC_DESTROY, which the sidecar sets).
  kDisassociate,
  kZombie,  // soft-RoCE: gone by name, what is open goes on working
};

class FakeVerbs final : public rdma::Verbs {
 public:
  explicit FakeVerbs(std::shared_ptr<VerbsFabric> fabric = NewFabric());
  ~FakeVerbs() override;
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;

  // ---- Devices ----
  // A removed device may come back by its name once its removal has ended;
  // before that it ends the process, as the kernel answers EEXIST.
  void AddDevice(FakeDevice device);
  // Begins the removal, which ends when the last context is closed.
  void RemoveDevice(const std::string& name, Removal removal);
  // Whether no removed device of this name is open any more; at the latest
  // after ten seconds.
  bool AwaitRemoval(const std::string& name);
  // Raises PORT_ACTIVE or PORT_ERR when that changes.
  void SetPortState(const std::string& device, uint8_t port_num,
                    ibv_port_state state);
  void SetGid(const std::string& device, uint8_t port_num, int gid_index,
              const ibv_gid& gid);

  // ---- Faults, by the verbs name without ibv_: "alloc_pd", "post_send" ----
  void FailNext(std::string_view call, int error_number);
  // The call after `successes` further ones fails, once.
  void FailAfter(std::string_view call, int successes, int error_number);
  // Every call fails until StopFailing(), which also forgets the others.
  void FailAlways(std::string_view call, int error_number);
  void StopFailing(std::string_view call);

  // ---- Observation ----
  // Called at the start of every call with its verbs name, without a lock held.
  // Replaces the one before; an empty function ends it.
  void Observe(std::function<void(std::string_view call)> observer);
  uint64_t Calls(std::string_view call) const;  // since the start, failed too
  // "context", "pd", "comp_channel", "cq", "mr", "srq", "qp": only those that
  // live.
  std::map<std::string, int> LiveObjects() const;
  int LiveObjectCount() const;

  // ---- Events ----
  // To every open context of the device. Port events take `port_num`.
  void RaiseAsyncEvent(const std::string& device, ibv_event_type type,
                       int port_num = 1);
  void RaiseQpEvent(ibv_qp* qp, ibv_event_type type);
  void RaiseCqEvent(ibv_cq* cq, ibv_event_type type);
  // What a device does by itself on a fatal error: ERR, everything flushed,
  // QP_FATAL. qp->state keeps what ibv_modify_qp last set, as in libibverbs.
  void BreakQp(ibv_qp* qp);

  // ---- The wire: sends are carried out as they are posted, unless held ----
  void HoldWire();
  // Carries out the next send of some queue pair of the fabric; false when none
  // can go on.
  bool Step();
  void ReleaseWire();

  // ---- rdma::Verbs ----
  absl::StatusOr<std::vector<std::string>> DeviceNames() override;
  absl::StatusOr<ibv_context*> OpenDevice(const std::string& name) override;
  absl::Status CloseDevice(ibv_context* context) override;
  absl::StatusOr<ibv_device_attr> QueryDevice(ibv_context* context) override;
  absl::StatusOr<ibv_port_attr> QueryPort(ibv_context* context,
                                          uint8_t port_num) override;
  absl::StatusOr<ibv_gid> QueryGid(ibv_context* context, uint8_t port_num,
                                   int gid_index) override;
  absl::StatusOr<ibv_pd*> AllocPd(ibv_context* context) override;
  absl::Status DeallocPd(ibv_pd* pd) override;
  absl::StatusOr<ibv_comp_channel*> CreateCompChannel(
      ibv_context* context) override;
  absl::Status DestroyCompChannel(ibv_comp_channel* channel) override;
  absl::StatusOr<ibv_cq*> CreateCq(ibv_context* context, int cqe,
                                   void* cq_context,
                                   ibv_comp_channel* channel) override;
  absl::Status DestroyCq(ibv_cq* cq) override;
  absl::Status ResizeCq(ibv_cq* cq, int cqe) override;
  absl::StatusOr<ibv_mr*> RegMr(ibv_pd* pd, void* addr, size_t length,
                                int access) override;
  absl::Status DeregMr(ibv_mr* mr) override;
  absl::StatusOr<ibv_srq*> CreateSrq(ibv_pd* pd,
                                     ibv_srq_init_attr* attr) override;
  absl::Status DestroySrq(ibv_srq* srq) override;
  absl::StatusOr<ibv_qp*> CreateQp(ibv_pd* pd, ibv_qp_init_attr* attr,
                                   uint64_t send_ops_flags) override;
  absl::Status ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask) override;
  absl::Status QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask,
                       ibv_qp_init_attr* init_attr) override;
  absl::Status DestroyQp(ibv_qp* qp) override;
  absl::StatusOr<ibv_cq*> GetCqEvent(ibv_comp_channel* channel) override;
  void AckCqEvents(ibv_cq* cq, unsigned int count) override;
  absl::StatusOr<bool> GetAsyncEvent(ibv_context* context,
                                     ibv_async_event* event) override;
  void AckAsyncEvent(ibv_async_event* event) override;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace purser::fakes
