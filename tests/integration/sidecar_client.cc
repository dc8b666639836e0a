// SPDX-License-Identifier: Apache-2.0
//
// sidecar_client SOCKET COUNT [again | shared KEEP]: attaches to a sidecar,
// creates COUNT queue pairs of 128/2 send, 128/1 receive, says "holding COUNT"
// and holds them until it is killed. When its stream ends it ends with 3; with
// `again` it starts over, for ever. With `shared` they share a completion
// queue, and all but KEEP are destroyed before it says so.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "purser/v1/sidecar.grpc.pb.h"

namespace {

// `keep`: -1: all, each with its own completion queue.
int Hold(purser::v1::Sidecar::Stub* stub, int count, int keep) {
  grpc::ClientContext attach_context;
  purser::v1::AttachRequest attach;
  attach.set_name("sidecar_client");
  const auto events = stub->Attach(&attach_context, attach);
  purser::v1::AttachEvent event;
  if (!events->Read(&event) || !event.has_attached()) {
    std::fprintf(stderr, "cannot attach: %s\n",
                 events->Finish().error_message().c_str());
    return 1;
  }
  purser::v1::CreateQueuePairRequest request;
  request.set_client_id(event.attached().client_id());
  request.mutable_cap()->set_max_send_wr(128);
  request.mutable_cap()->set_max_send_sge(2);
  request.mutable_cap()->set_max_recv_wr(128);
  request.mutable_cap()->set_max_recv_sge(1);
  if (keep >= 0) request.mutable_completion_queue()->set_shared("all");
  std::vector<uint64_t> ids;
  for (int i = 0; i < count; ++i) {
    grpc::ClientContext context;
    purser::v1::CreateQueuePairResponse response;
    const grpc::Status status =
        stub->CreateQueuePair(&context, request, &response);
    ids.push_back(response.queue_pair().id());
    if (status.ok()) continue;
    std::fprintf(stderr, "cannot create: %s\n", status.error_message().c_str());
    return 1;
  }
  for (; keep >= 0 && count > keep; --count) {
    grpc::ClientContext context;
    purser::v1::DestroyQueuePairRequest destroy;
    destroy.set_client_id(request.client_id());
    destroy.set_id(ids[static_cast<size_t>(count - 1)]);
    purser::v1::DestroyQueuePairResponse response;
    const grpc::Status status =
        stub->DestroyQueuePair(&context, destroy, &response);
    if (status.ok()) continue;
    std::fprintf(stderr, "cannot destroy: %s\n",
                 status.error_message().c_str());
    return 1;
  }
  std::printf("holding %d\n", count);
  std::fflush(stdout);
  while (events->Read(&event)) continue;
  std::fprintf(stderr, "the stream ended: %s\n",
               events->Finish().error_message().c_str());
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) return 2;
  const int keep = argc == 5 ? std::atoi(argv[4]) : -1;
  for (;;) {
    // Not the backoff of the channel before.
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    auto stub = purser::v1::Sidecar::NewStub(
        grpc::CreateCustomChannel(std::string("unix:") + argv[1],
                                  grpc::InsecureChannelCredentials(), own));
    const int code = Hold(stub.get(), std::atoi(argv[2]), keep);
    if (argc != 4) return code;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}
