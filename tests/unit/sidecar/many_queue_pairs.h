// SPDX-License-Identifier: Apache-2.0
//
// A fake sidecar with many queue pairs of few clients, as a storage gateway's.
#pragma once

#include <malloc.h>

#include <cstdint>
#include <string>
#include <vector>

#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"
#include "sidecar/metrics.h"
#include "tests/unit/sidecar/fake_sidecar.h"

namespace purser::sidecar {

inline uint64_t AllocatedBytes() { return mallinfo2().uordblks; }

class ManyQueuePairs {
 public:
  static constexpr int kClients = 20;

  explicit ManyQueuePairs(int count)
      : sidecar_({.budget_bytes = uint64_t{1} << 40, .max_qp = 2 * count}) {
    for (int i = 0; i < kClients; ++i)
      clients_.push_back(sidecar_.Attach("client-" + std::to_string(i)));
    const uint64_t before = AllocatedBytes();
    for (int i = 0; i < count; ++i) sidecar_.Create(clients_[i % kClients]);
    with_fakes_ = AllocatedBytes() - before;
    count_ = count;
  }

  FakeSidecar& sidecar() { return sidecar_; }
  const std::string& client() const { return clients_.front(); }

  // Of the sidecar's own memory, without what the verbs fake allocates for
  // such queue pairs and their completion queues.
  uint64_t BytesEach() {
    return (with_fakes_ - FakesBytes()) / static_cast<uint64_t>(count_);
  }

  std::string Scrape() {
    const Metrics metrics(sidecar_.broker(), sidecar_.ledger(),
                          sidecar_.admission(), sidecar_.counters(), "1.0.0");
    return prometheus::TextSerializer().Serialize(metrics.Collect());
  }

 private:
  uint64_t FakesBytes() {
    fakes::FakeVerbs verbs;
    fakes::FakeDevice device = fakes::RxeDevice("rxe0");
    device.attr.max_qp = 2 * count_;
    verbs.AddDevice(std::move(device));
    const int cq_count = sidecar_.verbs().LiveObjects()["cq"];
    const rdma::Context context = rdma::OpenDevice(verbs, "rxe0").value();
    const rdma::ProtectionDomain pd = rdma::AllocPd(verbs, context).value();
    const rdma::CompletionChannel channel =
        rdma::CreateCompChannel(verbs, context).value();
    std::vector<rdma::CompletionQueue> cqs;
    std::vector<rdma::QueuePair> qps;
    cqs.reserve(static_cast<size_t>(cq_count));
    qps.reserve(static_cast<size_t>(count_));
    const uint64_t before = AllocatedBytes();
    for (int i = 0; i < cq_count; ++i)
      cqs.push_back(
          rdma::CreateCq(verbs, context, 255, nullptr, channel).value());
    for (int i = 0; i < count_; ++i) {
      const rdma::CompletionQueue& cq = cqs[static_cast<size_t>(i % cq_count)];
      ibv_qp_init_attr init{.send_cq = cq.get(),
                            .recv_cq = cq.get(),
                            .cap = {.max_send_wr = 100,
                                    .max_recv_wr = 100,
                                    .max_send_sge = 2,
                                    .max_recv_sge = 1},
                            .qp_type = IBV_QPT_RC};
      qps.push_back(rdma::CreateQp(verbs, pd, init).value());
    }
    const uint64_t bytes = AllocatedBytes() - before;
    qps.clear();
    cqs.clear();
    return bytes;
  }

  FakeSidecar sidecar_;
  std::vector<std::string> clients_;
  uint64_t with_fakes_ = 0;
  int count_ = 0;
};

}  // namespace purser::sidecar
