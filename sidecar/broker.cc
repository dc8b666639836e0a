// SPDX-License-Identifier: Apache-2.0
#include "sidecar/broker.h"

#include <malloc.h>

#include <utility>

#include "base/logging.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {

Broker::Broker(std::vector<Device*> devices, Counters& counters,
               uint64_t max_clients)
    : devices_(std::move(devices)),
      counters_(counters),
      clients_(max_clients) {}

absl::StatusOr<std::unique_ptr<Broker>> Broker::Create(
    std::vector<Device*> devices, const Admission& admission,
    Counters& counters, Options options) {
  std::unique_ptr<Broker> broker(
      new Broker(std::move(devices), counters, options.max_clients));
  broker->undestroyed_ =
      std::make_unique<Undestroyed>(counters, options.destroy_again_every);
  PURSER_ASSIGN_OR_RETURN(
      broker->regions_,
      Regions::Create(options.shared_volume, broker->clients_,
                      *broker->undestroyed_, counters, options.proc_root));
  broker->shared_receive_queues_ = std::make_unique<SharedReceiveQueues>(
      broker->clients_, admission, counters, *broker->undestroyed_,
      options.proc_root);
  broker->queue_pairs_ = std::make_unique<QueuePairs>(
      broker->clients_, admission, *broker->shared_receive_queues_,
      *broker->undestroyed_, counters, options.proc_root);
  for (Device* device : broker->devices_) {
    PURSER_ASSIGN_OR_RETURN(
        std::unique_ptr<DeviceWatch> watch,
        DeviceWatch::Start(
            *device,
            [self = broker.get(), device](const std::string& why) {
              self->DeviceLost(*device, why);
            },
            options.times));
    broker->watches_.push_back(std::move(watch));
  }
  return broker;
}

void Broker::GiveBack() {
  (void)giver_.Run([this] { GiveBackNow(); });
}

void Broker::GiveBackNow() {
  const uint64_t bytes = queue_pairs_->GiveBack();
  malloc_trim(0);
  if (bytes == 0) return;
  counters_.given_back_bytes += bytes;
  base::LogInfo("queue memory that was in no use was given back",
                {{"bytes", bytes}, {"size", base::FormatBytes(bytes)}});
}

absl::StatusOr<std::string> Broker::Attach(
    const std::string& name,
    std::function<void(const ClientEvent& event)> on_event) {
  PURSER_ASSIGN_OR_RETURN(std::string client_id, clients_.Add(name));
  {
    std::lock_guard lock(observers_mutex_);
    for (const auto& [scope, pressure] : pressure_)
      if (pressure.state != PressureState::kNormal)
        on_event(PressureEvent{scope, pressure});
    observers_.emplace(client_id, std::move(on_event));
  }
  base::LogInfo("client attached", {{"client", name}});
  return client_id;
}

void Broker::Detach(const std::string& client_id) {
  absl::StatusOr<std::string> name = clients_.NameOf(client_id);
  if (!name.ok()) return;
  clients_.Remove(client_id);
  {
    std::lock_guard lock(observers_mutex_);
    observers_.erase(client_id);
  }
  const auto end = [this, client_id, name = *std::move(name)] {
    queue_pairs_->EndClient(client_id);
    shared_receive_queues_->EndClient(client_id);
    regions_->EndClient(client_id);
    base::LogInfo("client detached; what it held is destroyed",
                  {{"client", name}});
  };
  if (!reaper_.Run(end)) end();
}

// On the watch's thread, not on the reaper's, which may be busy for a while.
void Broker::DeviceLost(const Device& device, const std::string& why) {
  const size_t queue_pairs = queue_pairs_->EndDevice(device, why);
  shared_receive_queues_->EndDevice(device, why);
  const size_t regions = regions_->EndDevice(device);
  undestroyed_->GiveUp(device.name());
  base::LogError("RDMA device lost: all that was on it is destroyed",
                 {{"why", why},
                  {"queue_pairs", queue_pairs},
                  {"memory_regions", regions}});
  Tell(DeviceLostEvent{device.name()});
}

void Broker::PressureChanged(PressureScope scope, const Pressure& pressure) {
  {
    std::lock_guard lock(observers_mutex_);
    pressure_[scope] = pressure;
  }
  Tell(PressureEvent{scope, pressure});
}

void Broker::Tell(const ClientEvent& event) {
  std::lock_guard lock(observers_mutex_);
  for (const auto& [client_id, on_event] : observers_) on_event(event);
}

absl::Status Broker::Ready() const {
  std::string faults;
  for (const Device* device : devices_) {
    const absl::Status status = device->Opened().status();
    if (status.ok()) continue;
    faults += (faults.empty() ? "" : "\n") + std::string(status.message());
  }
  return faults.empty() ? absl::OkStatus() : absl::UnavailableError(faults);
}

absl::StatusOr<Device*> Broker::FindDevice(const std::string& name) const {
  std::string names;
  for (Device* device : devices_) {
    if (name.empty() || device->name() == name) return device;
    names += (names.empty() ? "" : ", ") + device->name();
  }
  return absl::NotFoundError(
      fmt::format("the sidecar has no device \"{}\"; it has: {}", name, names));
}

}  // namespace purser::sidecar
