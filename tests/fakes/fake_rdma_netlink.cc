// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fake_rdma_netlink.h"

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <rdma/rdma_netlink.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace purser::fakes {
namespace {

using rdma::Answer;
using rdma::Bytes;
using rdma::ResourceKind;

constexpr size_t kObjectsInADatagram = 50;

constexpr ResourceKind kKinds[] = {
    ResourceKind::kContext, ResourceKind::kProtectionDomain,
    ResourceKind::kCompletionQueue, ResourceKind::kSharedReceiveQueue,
    ResourceKind::kQueuePair};

struct Numbers {
  int command, table, entry, id;
};

Numbers NumbersOf(ResourceKind kind) {
  switch (kind) {
    case ResourceKind::kContext:
      return {RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX,
              RDMA_NLDEV_ATTR_RES_CTX_ENTRY, RDMA_NLDEV_ATTR_RES_CTXN};
    case ResourceKind::kProtectionDomain:
      return {RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD,
              RDMA_NLDEV_ATTR_RES_PD_ENTRY, RDMA_NLDEV_ATTR_RES_PDN};
    case ResourceKind::kCompletionQueue:
      return {RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ,
              RDMA_NLDEV_ATTR_RES_CQ_ENTRY, RDMA_NLDEV_ATTR_RES_CQN};
    case ResourceKind::kSharedReceiveQueue:
      return {RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQ,
              RDMA_NLDEV_ATTR_RES_SRQ_ENTRY, RDMA_NLDEV_ATTR_RES_SRQN};
    case ResourceKind::kQueuePair:
      break;
  }
  return {RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP,
          RDMA_NLDEV_ATTR_RES_QP_ENTRY, RDMA_NLDEV_ATTR_RES_LQPN};
}

struct FreeMessage {
  void operator()(nl_msg* message) const { nlmsg_free(message); }
};
using Message = std::unique_ptr<nl_msg, FreeMessage>;

Message NewMessage(int command, int flags) {
  constexpr size_t kRoom = 64 << 10;
  Message message(nlmsg_alloc_size(kRoom));
  nlmsg_put(message.get(), 0, 0, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), 0,
            flags);
  return message;
}

std::vector<std::byte> BytesOf(const Message& message) {
  const nlmsghdr* header = nlmsg_hdr(message.get());
  const auto* bytes = reinterpret_cast<const std::byte*>(header);
  return {bytes, bytes + header->nlmsg_len};
}

std::vector<std::byte> Number(int type, int32_t value) {
  Message message(nlmsg_alloc());
  nlmsg_put(message.get(), 0, 0, type, 0, 0);
  nlmsg_append(message.get(), &value, sizeof(value), NLMSG_ALIGNTO);
  return BytesOf(message);
}
std::vector<std::byte> Done() { return Number(NLMSG_DONE, 0); }
std::vector<std::byte> Error(int error) { return Number(NLMSG_ERROR, -error); }

void PutObject(nl_msg* message, const KernelObject& object) {
  const Numbers numbers = NumbersOf(object.kind);
  nlattr* entry = nla_nest_start(message, numbers.entry);
  nla_put_u32(message, numbers.id, object.id);
  if (object.context && object.kind != ResourceKind::kContext)
    nla_put_u32(message, RDMA_NLDEV_ATTR_RES_CTXN, *object.context);
  if (object.protection_domain)
    nla_put_u32(message, RDMA_NLDEV_ATTR_RES_PDN, *object.protection_domain);
  if (object.kind == ResourceKind::kQueuePair) {
    if (object.remote_qpn)
      nla_put_u32(message, RDMA_NLDEV_ATTR_RES_RQPN, *object.remote_qpn);
    nla_put_u8(message, RDMA_NLDEV_ATTR_RES_TYPE, object.type);
    nla_put_u8(message, RDMA_NLDEV_ATTR_RES_STATE, object.state);
  }
  if (object.kind == ResourceKind::kCompletionQueue)
    nla_put_u32(message, RDMA_NLDEV_ATTR_RES_CQE, object.cqe);
  if (!object.kernel_owner.empty())
    nla_put_string(message, RDMA_NLDEV_ATTR_RES_KERN_NAME,
                   object.kernel_owner.c_str());
  if (object.pid) nla_put_u32(message, RDMA_NLDEV_ATTR_RES_PID, *object.pid);
  if (!object.driver.empty()) {
    nlattr* driver = nla_nest_start(message, RDMA_NLDEV_ATTR_DRIVER);
    for (const auto& [name, value] : object.driver) {
      nla_put_string(message, RDMA_NLDEV_ATTR_DRIVER_STRING, name.c_str());
      nla_put_u8(message, RDMA_NLDEV_ATTR_DRIVER_PRINT_TYPE,
                 RDMA_NLDEV_PRINT_TYPE_HEX);
      nla_put_u32(message, RDMA_NLDEV_ATTR_DRIVER_U32, value);
    }
    nla_nest_end(message, driver);
  }
  nla_nest_end(message, entry);
}

}  // namespace

class FakeTransport : public rdma::NetlinkTransport {
 public:
  explicit FakeTransport(FakeRdmaKernel& kernel) : kernel_(kernel) {}
  absl::Status Exchange(
      Bytes request,
      absl::FunctionRef<absl::StatusOr<Answer>(Bytes)> on_datagram) override {
    for (const auto& datagram : kernel_.Answer(request)) {
      const absl::StatusOr<Answer> answer = on_datagram(datagram);
      if (!answer.ok()) return answer.status();
      if (*answer == Answer::kDone) return absl::OkStatus();
    }
    return absl::DeadlineExceededError("no more datagrams");
  }

 private:
  FakeRdmaKernel& kernel_;
};

uint32_t FakeRdmaKernel::AddDevice(const std::string& name) {
  devices_[name].index = next_index_;
  return next_index_++;
}

void FakeRdmaKernel::RemoveDevice(const std::string& name) {
  devices_.erase(name);
}

void FakeRdmaKernel::Add(const std::string& device, KernelObject object) {
  answers_.clear();
  devices_[device].objects[object.kind].push_back(std::move(object));
}

void FakeRdmaKernel::Clear(const std::string& device) {
  answers_.clear();
  devices_[device].objects.clear();
}

std::unique_ptr<rdma::NetlinkTransport> FakeRdmaKernel::Open() {
  return std::make_unique<FakeTransport>(*this);
}

std::vector<FakeRdmaKernel::Datagram> FakeRdmaKernel::AnswerDevices() const {
  const Message message = NewMessage(RDMA_NLDEV_CMD_GET, NLM_F_MULTI);
  Datagram all;
  for (const auto& [name, device] : devices_) {
    const Message one = NewMessage(RDMA_NLDEV_CMD_GET, NLM_F_MULTI);
    nla_put_u32(one.get(), RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
    nla_put_string(one.get(), RDMA_NLDEV_ATTR_DEV_NAME, name.c_str());
    const Datagram bytes = BytesOf(one);
    all.insert(all.end(), bytes.begin(), bytes.end());
    all.resize(NLMSG_ALIGN(all.size()));
  }
  if (all.empty()) return {Done()};
  return {all, Done()};
}

const std::vector<FakeRdmaKernel::Datagram>& FakeRdmaKernel::AnswerResources(
    ResourceKind kind, const Device& device) {
  std::vector<Datagram>& datagrams = answers_[{device.index, kind}];
  if (!datagrams.empty()) return datagrams;
  const auto found = device.objects.find(kind);
  const std::vector<KernelObject> none;
  const std::vector<KernelObject>& objects =
      found == device.objects.end() ? none : found->second;
  for (size_t begin = 0; begin < objects.size(); begin += kObjectsInADatagram) {
    const Message message = NewMessage(NumbersOf(kind).command, NLM_F_MULTI);
    nla_put_u32(message.get(), RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
    nlattr* table = nla_nest_start(message.get(), NumbersOf(kind).table);
    const size_t end = std::min(begin + kObjectsInADatagram, objects.size());
    for (size_t i = begin; i < end; ++i) PutObject(message.get(), objects[i]);
    nla_nest_end(message.get(), table);
    datagrams.push_back(BytesOf(message));
  }
  datagrams.push_back(Done());
  return datagrams;
}

std::vector<FakeRdmaKernel::Datagram> FakeRdmaKernel::AnswerRaw(
    uint32_t device_index, uint32_t qpn) {
  ++raw_requests_;
  if (!net_admin_) return {Error(EPERM)};
  for (const auto& [name, device] : devices_) {
    if (device.index != device_index) continue;
    const auto objects = device.objects.find(ResourceKind::kQueuePair);
    if (objects == device.objects.end()) continue;
    for (const KernelObject& object : objects->second) {
      if (object.id != qpn) continue;
      const Message message = NewMessage(RDMA_NLDEV_CMD_RES_QP_GET_RAW, 0);
      nla_put(message.get(), RDMA_NLDEV_ATTR_RES_RAW,
              static_cast<int>(object.raw.size()), object.raw.data());
      return {BytesOf(message)};
    }
  }
  return {Error(EINVAL)};
}

std::vector<FakeRdmaKernel::Datagram> FakeRdmaKernel::Answer(Bytes request) {
  if (canned_) return {*std::exchange(canned_, std::nullopt)};
  auto* header =
      reinterpret_cast<nlmsghdr*>(const_cast<std::byte*>(request.data()));
  nlattr* attributes[RDMA_NLDEV_ATTR_MAX] = {};
  nlmsg_parse(header, 0, attributes, RDMA_NLDEV_ATTR_MAX - 1, nullptr);
  const int command = RDMA_NL_GET_OP(header->nlmsg_type);
  if (command == RDMA_NLDEV_CMD_GET) return AnswerDevices();
  if (command == RDMA_NLDEV_CMD_SYS_GET) {
    if (!mode_) return {Error(EINVAL)};
    const Message message = NewMessage(RDMA_NLDEV_CMD_SYS_GET, 0);
    nla_put_u8(message.get(), RDMA_NLDEV_SYS_ATTR_NETNS_MODE,
               *mode_ == rdma::NamespaceMode::kShared ? 1 : 0);
    return {BytesOf(message)};
  }
  const uint32_t index = nla_get_u32(attributes[RDMA_NLDEV_ATTR_DEV_INDEX]);
  if (command == RDMA_NLDEV_CMD_RES_QP_GET_RAW)
    return AnswerRaw(index, nla_get_u32(attributes[RDMA_NLDEV_ATTR_RES_LQPN]));
  for (const ResourceKind kind : kKinds) {
    if (NumbersOf(kind).command != command) continue;
    if (const auto failure = failures_.extract(kind))
      return {Error(failure.mapped())};
    for (const auto& [name, device] : devices_)
      if (device.index == index) return AnswerResources(kind, device);
  }
  return {Error(EINVAL)};
}

}  // namespace purser::fakes
