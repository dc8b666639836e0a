// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "client/client.h"
#include "tests/fakes/fake_fabric.h"
#include "tests/fakes/fake_sidecar_service.h"
#include "tests/fakes/file_tree.h"

namespace purser::client {

// A fake sidecar in a shared volume of its own, and clients of it.
class ClientTest : public testing::Test {
 protected:
  static v1::Capabilities Cap(uint32_t send_wr, uint32_t recv_wr) {
    v1::Capabilities cap;
    cap.set_max_send_wr(send_wr);
    cap.set_max_send_sge(1);
    cap.set_max_recv_wr(recv_wr);
    cap.set_max_recv_sge(1);
    return cap;
  }
  static QueuePairSpec Spec(uint32_t send_wr = 16, uint32_t recv_wr = 16) {
    QueuePairSpec spec;
    spec.cap = Cap(send_wr, recv_wr);
    return spec;
  }
  std::unique_ptr<Client> Connected(const Options& options = {}) {
    auto client = Client::Connect(sidecar_.socket_path(), "test", options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? std::move(*client) : nullptr;
  }

  fakes::FileTree volume_;
  fakes::FakeFabric fabric_;
  fakes::FakeSidecarService sidecar_{volume_.root().string(), fabric_};
};

}  // namespace purser::client
