// SPDX-License-Identifier: Apache-2.0
//
// One completion, as a work queue hands it out.
#pragma once

#include "rdma/verbs.h"

namespace purser::sidecar {

struct Completion {
  ibv_wc wc{};  // wr_id as the caller posted it
  bool receive = false;
  bool shared_receive = false;  // of a shared receive queue
};

// "SUCCESS", "WR_FLUSH_ERR", …: the constant without IBV_WC_.
const char* CompletionStatusName(ibv_wc_status status);

}  // namespace purser::sidecar
