// SPDX-License-Identifier: Apache-2.0
//
// How libibverbs' error conventions come out of the seam. The library's
// functions are defined here, so that each can be made to fail as it, or a
// provider, does.
#include "rdma/verbs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace {

// What the next library call does.
struct Behaviour {
  int result = 0;        // of calls that return an int
  bool null = false;     // of calls that return a pointer
  bool no_list = false;  // of ibv_get_device_list
  int error_number = 0;  // what errno is set to; 0: left alone
  int closed = 0, freed_lists = 0, destroyed_channels = 0;
  int interruptions = 0;  // EINTR before that
} library;

ibv_device device_a, device_b;
ibv_context opened;
ibv_comp_channel channel;

int Fail() {
  if (library.error_number != 0) errno = library.error_number;
  return library.result;
}

template <typename T>
T* Make(T* object) {
  if (library.error_number != 0) errno = library.error_number;
  return library.null ? nullptr : object;
}

}  // namespace

// ibv_query_port and ibv_reg_mr are macros as well.
#undef ibv_query_port
#undef ibv_reg_mr

extern "C" {
ibv_device** ibv_get_device_list(int* count) {
  if (library.no_list) {
    errno = library.error_number;
    return nullptr;
  }
  *count = 2;
  return new ibv_device* [3] { &device_a, &device_b, nullptr };
}
void ibv_free_device_list(ibv_device** list) {
  ++library.freed_lists;
  delete[] list;
}
ibv_context* ibv_open_device(ibv_device* device) {
  opened.device = device;
  return Make(&opened);
}
int ibv_close_device(ibv_context*) {
  ++library.closed;
  return Fail();
}
int ibv_query_device(ibv_context*, ibv_device_attr* attr) {
  attr->max_qp = 5;
  return Fail();
}
int ibv_query_port(ibv_context*, uint8_t, _compat_ibv_port_attr*) {
  return Fail();
}
int ibv_query_gid(ibv_context*, uint8_t, int, ibv_gid*) { return Fail(); }
ibv_pd* ibv_alloc_pd(ibv_context*) {
  static ibv_pd pd;
  return Make(&pd);
}
int ibv_dealloc_pd(ibv_pd*) { return Fail(); }
ibv_comp_channel* ibv_create_comp_channel(ibv_context*) {
  return Make(&channel);
}
int ibv_destroy_comp_channel(ibv_comp_channel*) {
  ++library.destroyed_channels;
  return Fail();
}
ibv_cq* ibv_create_cq(ibv_context*, int, void*, ibv_comp_channel*, int) {
  static ibv_cq cq;
  return Make(&cq);
}
int ibv_destroy_cq(ibv_cq*) { return Fail(); }
int ibv_resize_cq(ibv_cq*, int) { return Fail(); }
ibv_srq* ibv_create_srq(ibv_pd*, ibv_srq_init_attr*) {
  static ibv_srq srq;
  return Make(&srq);
}
int ibv_destroy_srq(ibv_srq*) { return Fail(); }
ibv_mr* ibv_reg_mr_iova2(ibv_pd*, void*, size_t, uint64_t, unsigned) {
  static ibv_mr mr;
  return Make(&mr);
}
int ibv_dereg_mr(ibv_mr*) { return Fail(); }
ibv_qp* ibv_create_qp(ibv_pd*, ibv_qp_init_attr*) {
  static ibv_qp qp;
  return Make(&qp);
}
int ibv_modify_qp(ibv_qp*, ibv_qp_attr*, int) { return Fail(); }
int ibv_query_qp(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) {
  return Fail();
}
int ibv_destroy_qp(ibv_qp*) { return Fail(); }
int ibv_get_cq_event(ibv_comp_channel*, ibv_cq** cq, void**) {
  if (library.interruptions-- > 0) {
    errno = EINTR;
    return -1;
  }
  static ibv_cq event_cq;
  *cq = &event_cq;
  return Fail();
}
void ibv_ack_cq_events(ibv_cq*, unsigned) {}
int ibv_get_async_event(ibv_context*, ibv_async_event*) { return Fail(); }
void ibv_ack_async_event(ibv_async_event*) {}
}

namespace purser::rdma {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LibibverbsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    library = {};
    std::strcpy(device_a.name, "rxe0");
    std::strcpy(device_a.dev_name, "uverbs0");
    std::strcpy(device_b.name, "mlx5_0");
    context_.device = &device_a;
    pd_.context = mr_.context = qp_.context = cq_.context = srq_.context =
        &context_;
    channel.context = &context_;
    ASSERT_EQ(pipe(pipe_), 0);
    opened.async_fd = pipe_[0];
    channel.fd = pipe_[1];
  }
  void TearDown() override {
    close(pipe_[0]);
    close(pipe_[1]);
  }

  // Every call of one convention.
  std::vector<absl::Status> PointerCalls() {
    ibv_qp_init_attr init{};
    ibv_srq_init_attr srq_init{};
    return {verbs_.OpenDevice("rxe0").status(),
            verbs_.AllocPd(&context_).status(),
            verbs_.CreateCompChannel(&context_).status(),
            verbs_.CreateCq(&context_, 1, nullptr, nullptr).status(),
            verbs_.RegMr(&pd_, nullptr, 1, 0).status(),
            verbs_.CreateSrq(&pd_, &srq_init).status(),
            verbs_.CreateQp(&pd_, &init, 0).status()};
  }
  std::vector<absl::Status> ErrnoValuedCalls() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    return {verbs_.QueryDevice(&context_).status(),
            verbs_.QueryPort(&context_, 1).status(),
            verbs_.DeallocPd(&pd_),
            verbs_.DestroyCompChannel(&channel),
            verbs_.DestroyCq(&cq_),
            verbs_.ResizeCq(&cq_, 7),
            verbs_.DestroySrq(&srq_),
            verbs_.DeregMr(&mr_),
            verbs_.ModifyQp(&qp_, &attr, 0),
            verbs_.QueryQp(&qp_, &attr, 0, &init),
            verbs_.DestroyQp(&qp_)};
  }
  std::vector<absl::Status> MinusOneCalls() {
    ibv_async_event event{};
    return {verbs_.CloseDevice(&context_),
            verbs_.QueryGid(&context_, 1, 0).status(),
            verbs_.GetCqEvent(&channel).status(),
            verbs_.GetAsyncEvent(&context_, &event).status()};
  }

  Verbs& verbs_ = LibibverbsVerbs();
  ibv_context context_{};
  ibv_pd pd_{};
  ibv_mr mr_{};
  ibv_qp qp_{};
  ibv_cq cq_{};
  ibv_srq srq_{};
  int pipe_[2];
};

TEST_F(LibibverbsTest, SuccessIsOk) {
  for (const auto& calls :
       {PointerCalls(), ErrnoValuedCalls(), MinusOneCalls()})
    for (const absl::Status& status : calls) EXPECT_TRUE(status.ok()) << status;
}

TEST_F(LibibverbsTest, PointerCallsFailWithNullAndErrno) {
  library.null = true;
  library.error_number = ENOMEM;
  for (const absl::Status& status : PointerCalls())
    EXPECT_EQ(ErrnoOf(status), ENOMEM) << status;
}

TEST_F(LibibverbsTest, ErrnoValuedCallsReturnIt) {
  library.result = EBUSY;  // and errno is something else
  library.error_number = EINVAL;
  for (const absl::Status& status : ErrnoValuedCalls())
    EXPECT_EQ(ErrnoOf(status), EBUSY) << status;
}

TEST_F(LibibverbsTest, ErrnoValuedCallsOfProvidersThatReturnNegatives) {
  library.result = -EBUSY;
  for (const absl::Status& status : ErrnoValuedCalls())
    EXPECT_EQ(ErrnoOf(status), EBUSY) << status;
  library.result = -1;
  library.error_number = ENOMEM;
  for (const absl::Status& status : ErrnoValuedCalls())
    EXPECT_EQ(ErrnoOf(status), ENOMEM) << status;
}

TEST_F(LibibverbsTest, MinusOneCallsSetErrno) {
  library.result = -1;
  library.error_number = ENODEV;
  for (const absl::Status& status : MinusOneCalls())
    EXPECT_EQ(ErrnoOf(status), ENODEV) << status;
}

TEST_F(LibibverbsTest, FailureThatLeavesErrnoAloneIsEio) {
  library.result = -1;
  library.null = true;
  errno = ENOMEM;  // of something long past
  EXPECT_EQ(ErrnoOf(verbs_.QueryGid(&context_, 1, 0).status()), EIO);
  errno = ENOMEM;
  EXPECT_EQ(ErrnoOf(verbs_.AllocPd(&context_).status()), EIO);
  errno = ENOMEM;
  EXPECT_EQ(ErrnoOf(verbs_.DeallocPd(&pd_)), EIO);
  errno = EAGAIN;
  EXPECT_EQ(ErrnoOf(verbs_.GetCqEvent(&channel).status()), EIO);
}

TEST_F(LibibverbsTest, NoEventIsNoError) {
  library.result = -1;
  library.error_number = EAGAIN;
  const auto cq = verbs_.GetCqEvent(&channel);
  ASSERT_TRUE(cq.ok());
  EXPECT_EQ(*cq, nullptr);
  ibv_async_event event{};
  const auto got = verbs_.GetAsyncEvent(&context_, &event);
  ASSERT_TRUE(got.ok());
  EXPECT_FALSE(*got);
}

TEST_F(LibibverbsTest, InterruptedReadIsRepeated) {
  library.interruptions = 2;
  const auto cq = verbs_.GetCqEvent(&channel);
  ASSERT_TRUE(cq.ok());
  EXPECT_NE(*cq, nullptr);
}

TEST_F(LibibverbsTest, DescriptorsAreNonBlocking) {
  ASSERT_TRUE(verbs_.OpenDevice("rxe0").ok());
  EXPECT_NE(fcntl(opened.async_fd, F_GETFL) & O_NONBLOCK, 0);
  ASSERT_TRUE(verbs_.CreateCompChannel(&context_).ok());
  EXPECT_NE(fcntl(channel.fd, F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(LibibverbsTest, ADescriptorThatCannotBeNonBlockingIsGivenBack) {
  opened.async_fd = channel.fd = -1;
  EXPECT_EQ(ErrnoOf(verbs_.OpenDevice("rxe0").status()), EBADF);
  EXPECT_EQ(library.closed, 1);
  EXPECT_EQ(ErrnoOf(verbs_.CreateCompChannel(&context_).status()), EBADF);
  EXPECT_EQ(library.destroyed_channels, 1);
}

TEST_F(LibibverbsTest, DeviceNames) {
  EXPECT_THAT(*verbs_.DeviceNames(), ElementsAre("rxe0", "mlx5_0"));
  EXPECT_EQ(library.freed_lists, 1);
}

TEST_F(LibibverbsTest, KernelWithoutRdmaIsAnErrorThatSaysSo) {
  library.no_list = true;
  library.error_number = ENOSYS;
  const auto names = verbs_.DeviceNames();
  EXPECT_EQ(ErrnoOf(names.status()), ENOSYS);
  EXPECT_THAT(std::string(names.status().message()), HasSubstr("ib_uverbs"));
  EXPECT_EQ(ErrnoOf(verbs_.OpenDevice("rxe0").status()), ENOSYS);
  EXPECT_EQ(library.freed_lists, 0);
}

TEST_F(LibibverbsTest, UnknownDeviceListsThoseThereAre) {
  const auto context = verbs_.OpenDevice("efa_0");
  EXPECT_TRUE(absl::IsNotFound(context.status()));
  EXPECT_THAT(std::string(context.status().message()),
              HasSubstr("rxe0, mlx5_0"));
  EXPECT_EQ(library.freed_lists, 1);
}

TEST_F(LibibverbsTest, MessagesNameCallDeviceAndNumbers) {
  library.null = true;
  library.error_number = ENOMEM;
  ibv_qp_init_attr init{};
  init.cap.max_send_wr = 4096;
  init.cap.max_send_sge = 8;
  EXPECT_THAT(std::string(verbs_.CreateQp(&pd_, &init, 0).status().message()),
              HasSubstr("ibv_create_qp rxe0 send 4096 wr x 8 sge"));
  EXPECT_THAT(std::string(verbs_.OpenDevice("rxe0").status().message()),
              HasSubstr("/dev/infiniband/uverbs0"));
}

// What a provider gets that has ibv_create_qp_ex.
struct {
  ibv_qp_init_attr_ex attr{};
  ibv_qp qp{};
} extended;

TEST_F(LibibverbsTest, SendOpsFlagsGoTheExtendedWay) {
  verbs_context provider{};
  provider.sz = sizeof(provider);
  provider.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  provider.context.device = &device_a;
  provider.create_qp_ex = [](ibv_context*, ibv_qp_init_attr_ex* attr) {
    extended.attr = *attr;
    attr->cap.max_send_wr = 128;
    return Make(&extended.qp);
  };
  pd_.context = &provider.context;
  ibv_srq srq{};
  ibv_qp_init_attr init{.qp_context = &provider,
                        .send_cq = &cq_,
                        .recv_cq = &cq_,
                        .srq = &srq,
                        .cap = {.max_send_wr = 100, .max_send_sge = 3},
                        .qp_type = IBV_QPT_RC,
                        .sq_sig_all = 1};
  const auto qp = verbs_.CreateQp(&pd_, &init, IBV_QP_EX_WITH_SEND);
  ASSERT_TRUE(qp.ok()) << qp.status();
  EXPECT_EQ(*qp, &extended.qp);
  EXPECT_EQ(init.cap.max_send_wr, 128u) << "written back";
  EXPECT_EQ(extended.attr.send_ops_flags, IBV_QP_EX_WITH_SEND);
  EXPECT_EQ(extended.attr.comp_mask,
            IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
  EXPECT_EQ(extended.attr.pd, &pd_);
  EXPECT_EQ(extended.attr.qp_context, &provider);
  EXPECT_EQ(extended.attr.send_cq, &cq_);
  EXPECT_EQ(extended.attr.recv_cq, &cq_);
  EXPECT_EQ(extended.attr.srq, &srq);
  EXPECT_EQ(extended.attr.cap.max_send_sge, 3u);
  EXPECT_EQ(extended.attr.qp_type, IBV_QPT_RC);
  EXPECT_EQ(extended.attr.sq_sig_all, 1);

  library.null = true;
  library.error_number = ENOMEM;
  const auto failed = verbs_.CreateQp(&pd_, &init, IBV_QP_EX_WITH_SEND);
  EXPECT_EQ(ErrnoOf(failed.status()), ENOMEM);
  EXPECT_THAT(std::string(failed.status().message()),
              HasSubstr("ibv_create_qp_ex rxe0 send 128 wr"));
}

TEST_F(LibibverbsTest, SendOpsFlagsOfAProviderWithoutThem) {
  ibv_qp_init_attr init{};
  EXPECT_EQ(ErrnoOf(verbs_.CreateQp(&pd_, &init, IBV_QP_EX_WITH_SEND).status()),
            EOPNOTSUPP);
}

}  // namespace
}  // namespace purser::rdma
