// SPDX-License-Identifier: Apache-2.0
//
// The kernel's RDMA netlink as a fake with state: devices and their objects,
// told in the kernel's own message format, a few objects to a datagram.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rdma/resource_netlink.h"

namespace purser::fakes {

// Fields that the kernel would not send of a kind are left out by being empty.
struct KernelObject {
  rdma::ResourceKind kind = rdma::ResourceKind::kQueuePair;
  uint32_t id = 0;
  std::optional<uint32_t> pid;
  std::string kernel_owner;
  std::optional<uint32_t> context, protection_domain;
  uint8_t type = 2;   // RC
  uint8_t state = 3;  // RTS
  std::optional<uint32_t> remote_qpn;
  uint32_t cqe = 0;
  std::vector<std::pair<std::string, uint32_t>> driver;
  std::vector<std::byte> raw;
};

// Outlives its transports. One thread.
class FakeRdmaKernel {
 public:
  // Returns the device's index.
  uint32_t AddDevice(const std::string& name);
  void RemoveDevice(const std::string& name);
  void Add(const std::string& device, KernelObject object);
  void Clear(const std::string& device);
  // Requests of raw contexts need CAP_NET_ADMIN.
  void SetNetAdmin(bool has) { net_admin_ = has; }
  // nullopt: a kernel that does not have the command.
  void SetMode(std::optional<rdma::NamespaceMode> mode) { mode_ = mode; }
  // The next request of that kind is answered with the errno.
  void FailNext(rdma::ResourceKind kind, int error) { failures_[kind] = error; }
  // Datagrams of this are sent instead of the answer to the next request.
  void AnswerNext(std::vector<std::byte> datagram) { canned_ = datagram; }

  std::unique_ptr<rdma::NetlinkTransport> Open();
  int raw_requests() const { return raw_requests_; }

 private:
  friend class FakeTransport;
  struct Device {
    uint32_t index = 0;
    std::map<rdma::ResourceKind, std::vector<KernelObject>> objects;
  };
  using Datagram = std::vector<std::byte>;

  std::vector<Datagram> Answer(rdma::Bytes request);
  std::vector<Datagram> AnswerDevices() const;
  std::vector<Datagram> AnswerRaw(uint32_t device_index, uint32_t qpn);
  const std::vector<Datagram>& AnswerResources(rdma::ResourceKind kind,
                                               const Device& device);

  std::map<std::string, Device> devices_;
  // Made once, so that a reader's speed can be measured.
  std::map<std::pair<uint32_t, rdma::ResourceKind>, std::vector<Datagram>>
      answers_;
  std::map<rdma::ResourceKind, int> failures_;
  std::optional<Datagram> canned_;
  std::optional<rdma::NamespaceMode> mode_ = rdma::NamespaceMode::kShared;
  uint32_t next_index_ = 0;
  bool net_admin_ = true;
  int raw_requests_ = 0;
};

}  // namespace purser::fakes
