// SPDX-License-Identifier: Apache-2.0
//
// Who holds and does what, for `purser top`: read from the objects when it is
// asked for.
#pragma once

#include "purser/v1/sidecar.pb.h"
#include "sidecar/broker.h"

namespace purser::sidecar {

// All but the budget.
v1::GetStatusResponse StatusMessage(Broker& broker);

}  // namespace purser::sidecar
