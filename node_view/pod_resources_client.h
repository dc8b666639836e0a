// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "podresources/v1/api.grpc.pb.h"

namespace purser::node_view {

// Asks the kubelet who was allotted what. One connection, made at the first
// call and again after the kubelet's restart. Any thread.
class PodResourcesClient {
 public:
  explicit PodResourcesClient(const std::string& socket);

  // NotFound: there is no such socket. Unavailable: nobody answers at it.
  // DeadlineExceeded: too late.
  absl::StatusOr<::v1::ListPodResourcesResponse> List(
      std::chrono::milliseconds deadline);

 private:
  const std::string socket_;
  std::unique_ptr<::v1::PodResourcesLister::Stub> stub_;
};

}  // namespace purser::node_view
