// SPDX-License-Identifier: Apache-2.0
//
// What commands' options have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"

namespace purser::cli {

// "64Mi" and "64MiB" become "67108864".
CLI::Validator Bytes(uint64_t min, uint64_t max);
CLI::Validator OneOf(std::vector<std::string> names);

// Seconds, also fractions, from `min` on.
void AddSeconds(CLI::App& app, const std::string& name,
                std::chrono::milliseconds& target, const std::string& help,
                double min = 0.001);

// -o, --output: table, json or another of `formats`.
void AddOutput(CLI::App& app, Output& output,
               const std::vector<std::string>& formats = {"table", "json"});
// A quantity of at least 1.
CLI::Option* AddBytes(CLI::App& app, const std::string& name,
                      std::optional<uint64_t>& bytes, const std::string& help);

// A command that takes a file or one group by flags, the device, pods on a
// node.
CLI::App* AddWorkloadCommand(CLI::App& app, WorkloadSource& source,
                             const std::string& name, const std::string& help);
// What contradicts itself in those options; "" where nothing does.
std::string WorkloadFault(const CLI::App& app, const WorkloadSource& source);
// The option --`name`, if there is one.
bool IsGiven(const CLI::App& app, std::string_view name);
// Any option of the one group is given.
bool GivesGroup(const CLI::App& app);

// `purser plan`.
CLI::App* AddPlan(CLI::App& app, PlanCommand& plan);
// `purser check`.
CLI::App* AddCheck(CLI::App& app, CheckCommand& check);
// As WorkloadFault.
std::string CheckFault(const CLI::App& app, const CheckCommand& check);
// `purser top`.
CLI::App* AddTop(CLI::App& app, TopCommand& top);
// `purser node`.
CLI::App* AddNode(CLI::App& app, NodeCommand& node);

}  // namespace purser::cli
