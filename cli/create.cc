// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/names.h"
#include "cli/render.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

constexpr std::chrono::milliseconds kTick{200};

class Progress {
 public:
  Progress(uint32_t count, Environment& environment)
      : count_(count),
        environment_(environment),
        shown_(environment.out_is_terminal && count > 1) {}
  void Show(size_t done) {
    if (shown_)
      environment_.out << fmt::format("\r  {} of {}", done, count_)
                       << std::flush;
  }
  // Leaves nothing of it.
  void End() {
    if (shown_) environment_.out << "\r\033[K";
  }

 private:
  const uint32_t count_;
  Environment& environment_;
  const bool shown_;
};

void Print(const CreateCommand& command,
           const std::vector<v1::QueuePair>& created,
           Environment& environment) {
  if (command.output == Output::kJson) {
    v1::ListQueuePairsResponse list;
    list.mutable_queue_pairs()->Add(created.begin(), created.end());
    environment.out << Json(list);
  } else if (command.count > 1) {
    environment.out << RenderCreatedMany(command.count, created);
  } else if (!created.empty()) {
    environment.out << RenderCreated(command.cap, created.front());
  }
  environment.out << std::flush;
}

// Until a signal (OK), or until what is held is gone.
absl::Status Hold(const client::Client& client,
                  const std::vector<v1::QueuePair>& created,
                  Environment& environment) {
  while (!environment.wait_for_signal(kTick)) {
    if (absl::Status gone = client.status(); !gone.ok()) return gone;
    for (const std::string& device : client.lost_devices())
      if (device == created.front().device())
        return absl::UnavailableError(fmt::format(
            "device {} is gone, and its queue pairs with it", device));
  }
  return absl::OkStatus();
}

}  // namespace

int Create(const CreateCommand& command, client::Client& client,
           Environment& environment) {
  client::QueuePairSpec spec;
  spec.device = command.device;
  spec.type = command.type;
  spec.cap = command.cap;
  spec.class_name = command.class_name;
  spec.least = command.least;
  spec.send_operations = command.send_operations;
  if (command.completion_queue == "own")
    spec.completion_queue.set_own(true);
  else if (!command.completion_queue.empty())
    spec.completion_queue.set_shared(command.completion_queue);
  if (command.shared_receive_queue.max_wr > 0) {
    const auto queue =
        client.CreateSharedReceiveQueue(command.shared_receive_queue.max_wr,
                                        command.shared_receive_queue.max_sge,
                                        command.device, command.class_name);
    if (!queue.ok()) return Fail(queue.status(), environment);
    spec.shared_receive_queue_id = queue->id();
    spec.cap.clear_max_recv_wr();
    spec.cap.clear_max_recv_sge();
  }
  spec.detached = command.detach;

  std::vector<client::QueuePair> held;
  std::vector<v1::QueuePair> created;
  absl::Status refused;
  bool interrupted = false;
  Progress progress(command.count, environment);
  while (held.size() < command.count && refused.ok() && !interrupted) {
    auto queue_pair = client.CreateQueuePair(spec);
    if (queue_pair.ok()) {
      created.push_back(queue_pair->properties());
      if (queue_pair->shrunk() && held.empty())
        environment.err << fmt::format("shrunk: {}\n",
                                       queue_pair->shrunk()->why());
      held.push_back(std::move(*queue_pair));
      progress.Show(held.size());
    }
    refused = queue_pair.status();
    interrupted = !command.detach && held.size() < command.count &&
                  environment.wait_for_signal(std::chrono::milliseconds(0));
  }
  progress.End();
  Print(command, created, environment);
  const int exit_code = refused.ok() ? int{kOk} : Fail(refused, environment);
  if (command.detach || held.empty() || interrupted) return exit_code;

  environment.err << fmt::format("holding {} until Ctrl-C or SIGTERM\n",
                                 Count(held.size(), "queue pair"))
                  << std::flush;
  if (absl::Status gone = Hold(client, created, environment); !gone.ok())
    return Fail(gone, environment);
  return exit_code;
}

}  // namespace purser::cli
