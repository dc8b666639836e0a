// SPDX-License-Identifier: Apache-2.0
//
// The commands, on a connected client but for Plan, Check and Node. They return
// the exit code and print results and errors themselves.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/command_line.h"
#include "cli/run.h"
#include "client/client.h"

namespace purser::cli {

int Create(const CreateCommand& command, client::Client& client,
           Environment& environment);
int List(const ListCommand& command, client::Client& client,
         Environment& environment);
int Destroy(const DestroyCommand& command, client::Client& client,
            Environment& environment);
int Budget(const BudgetCommand& command, client::Client& client,
           Environment& environment);
int Fill(const FillCommand& command, const std::string& shared_volume,
         client::Client& client, Environment& environment);
int Ping(const PingCommand& command, const std::string& shared_volume,
         client::Client& client, Environment& environment);

// `connect`: again, when the sidecar was restarted.
int Top(const TopCommand& command,
        const std::function<absl::StatusOr<std::unique_ptr<client::Client>>()>&
            connect,
        std::unique_ptr<client::Client> client, Environment& environment);

int Node(const NodeCommand& command, Environment& environment);
int Plan(const PlanCommand& command, Environment& environment);
int Check(const CheckCommand& command, Environment& environment);

// Prints an error, a refusal with its calculation; returns its exit code.
int Fail(const absl::Status& status, Environment& environment);

}  // namespace purser::cli
