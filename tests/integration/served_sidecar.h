// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sidecar/service.h"
#include "tests/unit/sidecar/fake_sidecar.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {

// A fake sidecar that serves on a socket of its own.
class ServedSidecar {
 public:
  explicit ServedSidecar(FakeSidecarOptions options = {})
      : sidecar_(std::move(options)),
        service_(sidecar_.broker(), sidecar_.ledger(), sidecar_.admission(),
                 sidecar_.counters()),
        address_("unix:" + sidecar_.tree().path("sidecar.sock")) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~ServedSidecar() { Stop(); }

  void Stop() {
    service_.Stop();
    server_->Shutdown(std::chrono::system_clock::now() + kSoon);
  }

  FakeSidecar& sidecar() { return sidecar_; }
  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(
        address_, grpc::InsecureChannelCredentials(), arguments);
  }

 private:
  FakeSidecar sidecar_;
  Service service_;
  const std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// One client: its stream and the calls it makes.
class Client {
 public:
  explicit Client(const ServedSidecar& served, const std::string& name = "app")
      : channel_(served.NewChannel()), stub_(v1::Sidecar::NewStub(channel_)) {
    v1::AttachRequest request;
    request.set_name(name);
    stream_ = stub_->Attach(&stream_context_, request);
    v1::AttachEvent event;
    if (!stream_->Read(&event)) return;
    attached_ = event.attached();
  }
  ~Client() {
    if (stream_ != nullptr) Detach();
  }

  bool attached() const { return !attached_.client_id().empty(); }
  const v1::Attached& attachment() const { return attached_; }
  v1::Sidecar::Stub& stub() { return *stub_; }
  grpc::Status Detach() {
    stream_context_.TryCancel();
    return Finish();
  }
  grpc::Status Finish() {
    v1::AttachEvent event;
    while (stream_->Read(&event)) continue;
    const grpc::Status status = stream_->Finish();
    stream_.reset();
    return status;
  }
  bool ReadEvent(v1::AttachEvent* event) { return stream_->Read(event); }

  v1::QueuePair Create() {
    v1::CreateQueuePairRequest request;
    request.set_client_id(attached_.client_id());
    request.mutable_cap()->set_max_send_wr(100);
    request.mutable_cap()->set_max_recv_wr(100);
    request.mutable_cap()->set_max_send_sge(1);
    request.mutable_cap()->set_max_recv_sge(1);
    v1::CreateQueuePairResponse response;
    grpc::ClientContext context;
    const grpc::Status status =
        stub_->CreateQueuePair(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.queue_pair();
  }

  void Modify(v1::ModifyQueuePairRequest request, uint64_t id) {
    request.set_client_id(attached_.client_id());
    request.set_id(id);
    v1::ModifyQueuePairResponse response;
    grpc::ClientContext context;
    const grpc::Status status =
        stub_->ModifyQueuePair(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.queue_pair().state(), request.state());
  }

  void Connect(const v1::QueuePair& own, const v1::Endpoint& peer) {
    v1::ModifyQueuePairRequest init;
    init.set_state(v1::QUEUE_PAIR_STATE_INIT);
    init.set_port_num(own.local().port_num());
    init.set_pkey_index(0);
    init.set_qp_access_flags(IBV_ACCESS_REMOTE_WRITE);
    Modify(init, own.id());
    v1::ModifyQueuePairRequest rtr;
    rtr.set_state(v1::QUEUE_PAIR_STATE_RTR);
    rtr.set_path_mtu(std::min(own.local().mtu(), peer.mtu()));
    rtr.set_dest_qp_num(peer.qp_num());
    rtr.set_rq_psn(0);
    rtr.set_max_dest_rd_atomic(1);
    rtr.set_min_rnr_timer(12);
    rtr.mutable_ah_attr()->set_dgid(peer.gid());
    Modify(rtr, own.id());
    v1::ModifyQueuePairRequest rts;
    rts.set_state(v1::QUEUE_PAIR_STATE_RTS);
    rts.set_sq_psn(0);
    rts.set_timeout(14);
    rts.set_retry_cnt(7);
    rts.set_rnr_retry(7);
    rts.set_max_rd_atomic(1);
    Modify(rts, own.id());
  }

  v1::RegisterMemoryResponse Register(const std::string& path,
                                      uint64_t length) {
    v1::RegisterMemoryRequest request;
    request.set_client_id(attached_.client_id());
    request.set_path(path);
    request.set_length(length);
    request.set_access(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    v1::RegisterMemoryResponse response;
    grpc::ClientContext context;
    const grpc::Status status =
        stub_->RegisterMemory(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  v1::PostResponse PostReceive(uint64_t id, uint64_t wr_id, uint64_t region_id,
                               uint32_t length) {
    v1::PostReceiveRequest request;
    request.set_client_id(attached_.client_id());
    request.set_id(id);
    v1::ReceiveWorkRequest& wr = *request.add_work_requests();
    wr.set_wr_id(wr_id);
    v1::Sge& sge = *wr.add_sg_list();
    sge.set_region_id(region_id);
    sge.set_length(length);
    v1::PostResponse response;
    grpc::ClientContext context;
    const grpc::Status status =
        stub_->PostReceive(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  v1::PostResponse PostSend(uint64_t id, v1::SendWorkRequest wr) {
    v1::PostSendRequest request;
    request.set_client_id(attached_.client_id());
    request.set_id(id);
    *request.add_work_requests() = std::move(wr);
    v1::PostResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub_->PostSend(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  grpc::Status Poll(grpc::ClientContext* context, uint64_t id, int64_t seconds,
                    v1::PollCompletionsResponse* response) {
    v1::PollCompletionsRequest request;
    request.set_client_id(attached_.client_id());
    request.set_id(id);
    if (seconds != 0) request.mutable_wait()->set_seconds(seconds);
    return stub_->PollCompletions(context, request, response);
  }
  v1::PollCompletionsResponse Poll(uint64_t id, int64_t seconds) {
    v1::PollCompletionsResponse response;
    grpc::ClientContext context;
    const grpc::Status status = Poll(&context, id, seconds, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Sidecar::Stub> stub_;
  grpc::ClientContext stream_context_;
  std::unique_ptr<grpc::ClientReader<v1::AttachEvent>> stream_;
  v1::Attached attached_;
};

}  // namespace purser::sidecar
