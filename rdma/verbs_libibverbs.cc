// SPDX-License-Identifier: Apache-2.0
//
// The one file that knows how libibverbs reports errors: pointer calls (NULL
// and errno), errno-valued calls (the result is the errno, positive), -1 calls
// (-1 and errno), and counts. rdma-core 44 and later.
#include "rdma/verbs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "spdlog/fmt/fmt.h"

namespace purser::rdma {
namespace {

// errno after a failed pointer or -1 call. Some paths of libibverbs leave it
// untouched (ibv_query_gid on 44), so the caller zeroes it first.
int FailureErrno() { return errno != 0 ? errno : EIO; }

// Of an errno-valued call. Some providers return -1 with errno, or the negative
// errno, where the manual promises the positive one.
int ErrnoOfResult(int result) {
  if (result >= 0) return result;
  return result == -1 ? FailureErrno() : -result;
}

std::string On(const char* call, const ibv_context* context) {
  return fmt::format("{} {}", call, context->device->name);
}

std::string OnQp(const char* call, const ibv_qp* qp) {
  return fmt::format("{} {} qp {:#x}", call, qp->context->device->name,
                     qp->qp_num);
}

// The call's result by its convention, as a status or a pointer.
template <typename Call>
absl::Status ErrnoValued(std::string_view what, Call call) {
  errno = 0;
  const int error = ErrnoOfResult(call());
  return StatusOf(error, what);
}

template <typename Call>
absl::Status MinusOne(std::string_view what, Call call) {
  errno = 0;
  if (call() == 0) return absl::OkStatus();
  return StatusOf(FailureErrno(), what);
}

template <typename Call>
auto Pointer(std::string_view what, Call call)
    -> absl::StatusOr<decltype(call())> {
  errno = 0;
  if (auto* object = call(); object != nullptr) return object;
  return StatusOf(FailureErrno(), what);
}

// A -1 call that reads from a descriptor: false when there is nothing to read.
template <typename Call>
absl::StatusOr<bool> NextEvent(std::string_view what, Call call) {
  int error = 0;
  do {
    errno = 0;
    if (call() == 0) return true;
    error = FailureErrno();
  } while (error == EINTR);
  if (error == EAGAIN || error == EWOULDBLOCK) return false;
  return StatusOf(error, what);
}

absl::Status MakeNonBlocking(int fd, std::string_view what) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
    return StatusOf(errno, what);
  return absl::OkStatus();
}

// Owns the list of ibv_get_device_list; the devices in it live as long.
class DeviceList {
 public:
  static absl::StatusOr<DeviceList> Get() {
    errno = 0;
    int count = 0;
    ibv_device** devices = ibv_get_device_list(&count);
    if (devices == nullptr) {
      const int error = FailureErrno();
      return StatusOf(error,
                      error == ENOSYS
                          ? "ibv_get_device_list: this kernel shows no RDMA "
                            "support (load the device's driver and ib_uverbs)"
                          : "ibv_get_device_list");
    }
    return DeviceList(devices, count);
  }

  ibv_device** begin() const { return devices_.get(); }
  ibv_device** end() const { return devices_.get() + count_; }

 private:
  struct Free {
    void operator()(ibv_device** devices) const {
      ibv_free_device_list(devices);
    }
  };
  DeviceList(ibv_device** devices, int count)
      : devices_(devices), count_(count) {}

  std::unique_ptr<ibv_device*, Free> devices_;
  int count_;
};

class Libibverbs final : public Verbs {
 public:
  absl::StatusOr<std::vector<std::string>> DeviceNames() override {
    const absl::StatusOr<DeviceList> devices = DeviceList::Get();
    if (!devices.ok()) return devices.status();
    std::vector<std::string> names;
    for (const ibv_device* device : *devices) names.emplace_back(device->name);
    return names;
  }

  absl::StatusOr<ibv_context*> OpenDevice(const std::string& name) override {
    const absl::StatusOr<DeviceList> devices = DeviceList::Get();
    if (!devices.ok()) return devices.status();
    std::string names;
    for (ibv_device* device : *devices) {
      if (device->name == name) return Open(device);
      names += names.empty() ? "" : ", ";
      names += device->name;
    }
    return NoSuchDevice(name, names);
  }

  absl::Status CloseDevice(ibv_context* context) override {
    return MinusOne(On("ibv_close_device", context),
                    [&] { return ibv_close_device(context); });
  }

  absl::StatusOr<ibv_device_attr> QueryDevice(ibv_context* context) override {
    ibv_device_attr attr{};
    absl::Status status = ErrnoValued(On("ibv_query_device", context), [&] {
      return ibv_query_device(context, &attr);
    });
    if (!status.ok()) return status;
    return attr;
  }

  absl::StatusOr<ibv_port_attr> QueryPort(ibv_context* context,
                                          uint8_t port_num) override {
    ibv_port_attr attr{};
    absl::Status status =
        ErrnoValued(fmt::format("ibv_query_port {} port {}",
                                context->device->name, port_num),
                    [&] { return ibv_query_port(context, port_num, &attr); });
    if (!status.ok()) return status;
    return attr;
  }

  absl::StatusOr<ibv_gid> QueryGid(ibv_context* context, uint8_t port_num,
                                   int gid_index) override {
    ibv_gid gid{};
    absl::Status status = MinusOne(
        fmt::format("ibv_query_gid {} port {} index {}", context->device->name,
                    port_num, gid_index),
        [&] { return ibv_query_gid(context, port_num, gid_index, &gid); });
    if (!status.ok()) return status;
    return gid;
  }

  absl::StatusOr<ibv_pd*> AllocPd(ibv_context* context) override {
    return Pointer(On("ibv_alloc_pd", context),
                   [&] { return ibv_alloc_pd(context); });
  }

  absl::Status DeallocPd(ibv_pd* pd) override {
    return ErrnoValued(On("ibv_dealloc_pd", pd->context),
                       [&] { return ibv_dealloc_pd(pd); });
  }

  absl::StatusOr<ibv_comp_channel*> CreateCompChannel(
      ibv_context* context) override {
    const std::string what = On("ibv_create_comp_channel", context);
    absl::StatusOr<ibv_comp_channel*> channel =
        Pointer(what, [&] { return ibv_create_comp_channel(context); });
    if (!channel.ok()) return channel;
    if (absl::Status status = MakeNonBlocking((*channel)->fd, what);
        !status.ok()) {
      ibv_destroy_comp_channel(*channel);
      return status;
    }
    return channel;
  }

  absl::Status DestroyCompChannel(ibv_comp_channel* channel) override {
    return ErrnoValued(On("ibv_destroy_comp_channel", channel->context),
                       [&] { return ibv_destroy_comp_channel(channel); });
  }

  absl::StatusOr<ibv_cq*> CreateCq(ibv_context* context, int cqe,
                                   void* cq_context,
                                   ibv_comp_channel* channel) override {
    return Pointer(
        fmt::format("ibv_create_cq {} cqe {}", context->device->name, cqe),
        [&] { return ibv_create_cq(context, cqe, cq_context, channel, 0); });
  }

  absl::Status DestroyCq(ibv_cq* cq) override {
    return ErrnoValued(On("ibv_destroy_cq", cq->context),
                       [&] { return ibv_destroy_cq(cq); });
  }

  absl::Status ResizeCq(ibv_cq* cq, int cqe) override {
    return ErrnoValued(
        fmt::format("ibv_resize_cq {} cqe {}", cq->context->device->name, cqe),
        [&] { return ibv_resize_cq(cq, cqe); });
  }

  absl::StatusOr<ibv_srq*> CreateSrq(ibv_pd* pd,
                                     ibv_srq_init_attr* attr) override {
    return Pointer(fmt::format("ibv_create_srq {} {} wr x {} sge",
                               pd->context->device->name, attr->attr.max_wr,
                               attr->attr.max_sge),
                   [&] { return ibv_create_srq(pd, attr); });
  }

  absl::Status DestroySrq(ibv_srq* srq) override {
    return ErrnoValued(On("ibv_destroy_srq", srq->context),
                       [&] { return ibv_destroy_srq(srq); });
  }

  absl::StatusOr<ibv_mr*> RegMr(ibv_pd* pd, void* addr, size_t length,
                                int access) override {
    return Pointer(fmt::format("ibv_reg_mr {} length {} access {:#x}",
                               pd->context->device->name, length, access),
                   [&] { return ibv_reg_mr(pd, addr, length, access); });
  }

  absl::Status DeregMr(ibv_mr* mr) override {
    return ErrnoValued(On("ibv_dereg_mr", mr->context),
                       [&] { return ibv_dereg_mr(mr); });
  }

  absl::StatusOr<ibv_qp*> CreateQp(ibv_pd* pd, ibv_qp_init_attr* attr,
                                   uint64_t send_ops_flags) override {
    return Pointer(
        fmt::format("ibv_create_qp{} {} send {} wr x {} sge, receive {} wr x "
                    "{} sge, inline {}",
                    send_ops_flags != 0 ? "_ex" : "", pd->context->device->name,
                    attr->cap.max_send_wr, attr->cap.max_send_sge,
                    attr->cap.max_recv_wr, attr->cap.max_recv_sge,
                    attr->cap.max_inline_data),
        [&] {
          return send_ops_flags == 0 ? ibv_create_qp(pd, attr)
                                     : CreateQpEx(pd, attr, send_ops_flags);
        });
  }

  absl::Status ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask) override {
    return ErrnoValued(OnQp("ibv_modify_qp", qp),
                       [&] { return ibv_modify_qp(qp, attr, attr_mask); });
  }

  absl::Status QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask,
                       ibv_qp_init_attr* init_attr) override {
    return ErrnoValued(OnQp("ibv_query_qp", qp), [&] {
      return ibv_query_qp(qp, attr, attr_mask, init_attr);
    });
  }

  absl::Status DestroyQp(ibv_qp* qp) override {
    return ErrnoValued(OnQp("ibv_destroy_qp", qp),
                       [&] { return ibv_destroy_qp(qp); });
  }

  absl::StatusOr<ibv_cq*> GetCqEvent(ibv_comp_channel* channel) override {
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    const absl::StatusOr<bool> read =
        NextEvent(On("ibv_get_cq_event", channel->context),
                  [&] { return ibv_get_cq_event(channel, &cq, &cq_context); });
    if (!read.ok()) return read.status();
    return *read ? cq : nullptr;
  }

  void AckCqEvents(ibv_cq* cq, unsigned int count) override {
    ibv_ack_cq_events(cq, count);
  }

  absl::StatusOr<bool> GetAsyncEvent(ibv_context* context,
                                     ibv_async_event* event) override {
    return NextEvent(On("ibv_get_async_event", context),
                     [&] { return ibv_get_async_event(context, event); });
  }

  void AckAsyncEvent(ibv_async_event* event) override {
    ibv_ack_async_event(event);
  }

 private:
  static ibv_qp* CreateQpEx(ibv_pd* pd, ibv_qp_init_attr* attr,
                            uint64_t send_ops_flags) {
    ibv_qp_init_attr_ex extended{};
    extended.qp_context = attr->qp_context;
    extended.send_cq = attr->send_cq;
    extended.recv_cq = attr->recv_cq;
    extended.srq = attr->srq;
    extended.cap = attr->cap;
    extended.qp_type = attr->qp_type;
    extended.sq_sig_all = attr->sq_sig_all;
    extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    extended.pd = pd;
    extended.send_ops_flags = send_ops_flags;
    ibv_qp* qp = ibv_create_qp_ex(pd->context, &extended);
    if (qp != nullptr) attr->cap = extended.cap;
    return qp;
  }

  // libibverbs looks for the node elsewhere when it may not be opened where it
  // should be, and then says that there is none.
  static absl::Status WhyNot(const std::string& what, const ibv_device* device,
                             const absl::Status& said) {
    const std::string node =
        fmt::format("/dev/infiniband/{}", device->dev_name);
    const int fd = open(node.c_str(), O_RDWR | O_CLOEXEC);
    const int error = errno;
    if (fd >= 0) close(fd);
    return fd < 0 && (error == EPERM || error == EACCES) ? StatusOf(error, what)
                                                         : said;
  }

  static absl::StatusOr<ibv_context*> Open(ibv_device* device) {
    const std::string what =
        fmt::format("ibv_open_device {} (/dev/infiniband/{})", device->name,
                    device->dev_name);
    absl::StatusOr<ibv_context*> context =
        Pointer(what, [&] { return ibv_open_device(device); });
    if (!context.ok() && ErrnoOf(context.status()) == ENOENT)
      return WhyNot(what, device, context.status());
    if (!context.ok()) return context;
    if (absl::Status status = MakeNonBlocking((*context)->async_fd, what);
        !status.ok()) {
      ibv_close_device(*context);
      return status;
    }
    return context;
  }

  static absl::Status NoSuchDevice(const std::string& name,
                                   const std::string& names) {
    return absl::NotFoundError(
        names.empty()
            ? fmt::format("no RDMA device {}: this process sees none at all "
                          "(is /dev/infiniband mounted, the driver loaded?)",
                          name)
            : fmt::format("no RDMA device {}; there are: {}", name, names));
  }
};

}  // namespace

Verbs& LibibverbsVerbs() {
  static Libibverbs verbs;
  return verbs;
}

}  // namespace purser::rdma
