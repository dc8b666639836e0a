// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "purser/v1/sidecar.pb.h"
#include "sidecar/device.h"

namespace purser::sidecar {

struct ModifyAttributes {
  ibv_qp_attr attr{};
  int mask = 0;  // with IBV_QP_STATE
};

// The arguments of ibv_modify_qp that a request names. InvalidArgument for
// values that verbs would cut off or a port cannot take; whether the state
// machine takes them is not checked here. An address vector without sgid_index
// gets the port's preferred GID of this moment.
absl::StatusOr<ModifyAttributes> ModifyAttributesOf(
    const v1::ModifyQueuePairRequest& request, const Device& device);

}  // namespace purser::sidecar
