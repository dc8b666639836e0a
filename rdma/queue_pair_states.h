// SPDX-License-Identifier: Apache-2.0
//
// Which ibv_modify_qp is legal: edges and attribute masks by queue-pair type
// (InfiniBand specification; the kernel's ib_modify_qp_is_ok). Checked before
// the call, so that the answer names the attribute instead of EINVAL.
#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "absl/status/status.h"

namespace purser::rdma {

// InvalidArgument: "RTR -> RTS of an RC queue pair needs timeout, retry_cnt;
// sets min_rnr_timer, which belongs to …". FailedPrecondition: "RESET -> RTS is
// no legal edge; from RESET go to INIT".
absl::Status CheckModify(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to,
                         int attr_mask);

const char* StateName(ibv_qp_state state);  // "RESET" … "ERR", "UNKNOWN"
const char* QueuePairTypeName(ibv_qp_type type);  // "RC", "UC", "UD", …
std::string AttrMaskNames(int attr_mask);         // "PORT|PKEY_INDEX"

}  // namespace purser::rdma
