// SPDX-License-Identifier: Apache-2.0
//
// Values of the API in the words that people know.
#pragma once

#include <cstdint>
#include <string>

#include "purser/v1/sidecar.pb.h"

namespace purser::cli {

std::string TypeName(v1::QueuePairType type);       // "RC"
std::string StateName(v1::QueuePairState state);    // "RTS"
std::string SourceName(v1::BudgetSource source);    // "plugin"
std::string ScopeName(v1::PressureScope scope);     // "node"
std::string PressureName(v1::PressureState state);  // "tight"
// "fe80::1", "::ffff:10.0.0.1"; hexadecimal where it is not 16 bytes.
std::string GidText(const std::string& gid);
// Whoever is charged.
uint64_t Total(const v1::ChargedBytes& bytes);
// "4,739,072 bytes (4.5 MiB)".
std::string Bytes(uint64_t bytes);
// "1 queue pair", "2 queue pairs".
std::string Count(uint64_t count, const std::string& noun);

}  // namespace purser::cli
