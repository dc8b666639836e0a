// SPDX-License-Identifier: Apache-2.0
//
// What commands' options have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace purser::cli {

// "64Mi" and "64MiB" become "67108864".
CLI::Validator Bytes(uint64_t min, uint64_t max);
CLI::Validator OneOf(std::vector<std::string> names);

// -o, --output: table or json.
void AddOutput(CLI::App& app, Output& output);

// The file or one group by flags, the device, pods on a node.
void AddWorkload(CLI::App& app, WorkloadSource& source);
// What contradicts itself in those options; "" where nothing does.
std::string WorkloadFault(const CLI::App& app, const WorkloadSource& source);

// `purser plan`.
CLI::App* AddPlan(CLI::App& app, PlanCommand& plan);
// `purser check`.
CLI::App* AddCheck(CLI::App& app, CheckCommand& check);
// `purser node`.
CLI::App* AddNode(CLI::App& app, NodeCommand& node);

}  // namespace purser::cli
