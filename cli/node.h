// SPDX-License-Identifier: Apache-2.0
//
// `purser node`: the node view as people and programs read it.
#pragma once

#include <string>

#include "node_view/view.h"
#include "purser/v1/node_view.pb.h"

namespace purser::cli {

// Whether the kernel told who holds queues: where it did not, no holdings are
// no answer.
bool SaysWhoHolds(const node_view::View& view);
std::string RenderNode(const node_view::View& view);
v1::NodeView NodeViewMessage(const node_view::View& view);

}  // namespace purser::cli
