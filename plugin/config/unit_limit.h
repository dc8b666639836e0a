// SPDX-License-Identifier: Apache-2.0
//
// How many units of a resource the kubelet takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace purser::plugin {

// v1beta1.Device.health.
inline constexpr std::string_view kHealthyWord = "Healthy";
inline constexpr std::string_view kUnhealthyWord = "Unhealthy";

// The kubelet's gRPC client takes no message above this (kubelet, devicemanager
// client: gRPC's default). A larger ListAndWatch message leaves the resource at
// 0, with a line in the kubelet's log alone.
inline constexpr size_t kKubeletMaxMessageBytes = 4 << 20;

// Bytes of the largest message that units 0 … count - 1 can make: all of them
// unhealthy, which is the longer word.
size_t LargestMessageBytes(uint32_t count);
// The largest count whose message the kubelet takes in any state of health.
uint32_t LargestUnitCount();

}  // namespace purser::plugin
