// SPDX-License-Identifier: Apache-2.0
//
// Posting a list of work requests to a ring, whichever it is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "rdma/verbs.h"
#include "sidecar/pending_requests.h"

namespace purser::sidecar {

struct PostResult {
  uint32_t posted = 0;   // requests posted, in order
  int error_number = 0;  // of request [posted]; 0: all were posted
  std::string message;
  absl::Status ended;  // not OK: the queue was closed, nothing was posted
};

// Chains the requests, gives each a key of `pending` in place of its wr_id, and
// posts them; those that the device refused are not pending. Sends are
// signalled. Of the result, `posted` and `error_number` are set.
template <typename Request, typename Post>
PostResult PostChain(std::span<Request> requests, bool receive,
                     PendingRequests& pending, Post post) {
  const size_t count = requests.size();
  if (count == 0) return {};
  for (size_t i = 0; i < count; ++i) {
    requests[i].wr_id = pending.Add({requests[i].wr_id, receive});
    requests[i].next = i + 1 < count ? &requests[i + 1] : nullptr;
    if constexpr (std::is_same_v<Request, ibv_send_wr>)
      requests[i].send_flags |= IBV_SEND_SIGNALED;
  }
  Request* bad = nullptr;
  PostResult result;
  result.error_number = post(requests.data(), &bad);
  result.posted =
      static_cast<uint32_t>(result.error_number == 0 ? count
                            : bad == nullptr         ? 0
                                                     : bad - requests.data());
  for (size_t i = result.posted; i < count; ++i)
    pending.Take(requests[i].wr_id);
  return result;
}

}  // namespace purser::sidecar
