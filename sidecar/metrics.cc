// SPDX-License-Identifier: Apache-2.0
#include "sidecar/metrics.h"

#include <array>
#include <map>
#include <utility>

#include "prometheus/metric_family.h"
#include "rdma/queue_pair_states.h"
#include "sidecar/metric_families.h"

namespace purser::sidecar {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr char kContainer[] = "container";
constexpr char kNode[] = "node";

MetricFamily Gauge(const char* name, const char* help, uint64_t value) {
  Family<0> family(MetricType::Gauge, name, help, {});
  family.Add({}, static_cast<double>(value));
  return family.Take();
}

// ---- Queue pairs and their memory ----

// The label `queue`. The provider's arrays beside the rings are overhead.
constexpr std::array kQueues = {"send", "receive", "completion",
                                "shared_receive", "overhead"};

// Of one device and class.
struct Totals {
  std::array<queue_memory::Charge, kQueues.size()> memory;
  std::map<std::pair<ibv_qp_type, ibv_qp_state>, uint64_t> queue_pairs;

  void Add(const BrokeredQueuePair& queue_pair) {
    const queue_memory::QueueMemory& of = queue_pair.facts().memory;
    memory[0] += of.send;
    memory[1] += of.receive;
    memory[2] += of.completion;
    memory[3] += of.shared_receive;
    memory[4] += of.arrays + of.overhead;
    ++queue_pairs[{queue_pair.facts().type, queue_pair.KnownState()}];
  }
};
using TotalsByClass = std::map<std::pair<const Device*, std::string>, Totals>;

TotalsByClass Sum(
    const std::vector<Device*>& devices,
    const std::vector<std::shared_ptr<BrokeredQueuePair>>& queue_pairs) {
  TotalsByClass totals;
  // What a device without queue pairs shows.
  for (const Device* device : devices) {
    Totals& zeros = totals[{device, kDefaultClass}];
    for (int state = IBV_QPS_RESET; state <= IBV_QPS_ERR; ++state)
      zeros.queue_pairs[{IBV_QPT_RC, static_cast<ibv_qp_state>(state)}] = 0;
  }
  for (const auto& queue_pair : queue_pairs)
    totals[{queue_pair->facts().device, queue_pair->facts().class_name}].Add(
        *queue_pair);
  return totals;
}

MetricFamily MemoryFamily(const TotalsByClass& totals) {
  Family<4> family(MetricType::Gauge, "purser_queue_memory_bytes",
                   "Memory of the queues that the sidecar holds, by what it is "
                   "for and by who is charged: the container's cgroup, or the "
                   "node's kernel memory, which no cgroup sees.",
                   {"device", "queue", "charged_to", "class"});
  for (const auto& [key, of] : totals) {
    const auto& [device, class_name] = key;
    for (size_t i = 0; i < kQueues.size(); ++i) {
      family.Add({device->name(), kQueues[i], kContainer, class_name},
                 static_cast<double>(of.memory[i].container));
      family.Add({device->name(), kQueues[i], kNode, class_name},
                 static_cast<double>(of.memory[i].node));
    }
  }
  return family.Take();
}

MetricFamily QueuePairsFamily(const TotalsByClass& totals) {
  Family<4> family(MetricType::Gauge, "purser_queue_pairs",
                   "Queue pairs that the sidecar holds, by state.",
                   {"device", "type", "state", "class"});
  for (const auto& [key, of] : totals) {
    const auto& [device, class_name] = key;
    for (const auto& [type_and_state, count] : of.queue_pairs)
      family.Add({device->name(), rdma::QueuePairTypeName(type_and_state.first),
                  rdma::StateName(type_and_state.second), class_name},
                 static_cast<double>(count));
  }
  return family.Take();
}

uint64_t Backlog(
    const std::vector<std::shared_ptr<BrokeredQueuePair>>& queue_pairs) {
  uint64_t backlog = 0;
  for (const auto& queue_pair : queue_pairs)
    backlog += queue_pair->work_queue().outstanding_sends();
  return backlog;
}

// ---- Budget ----

struct BoundInForce {
  const Bound* bound = nullptr;  // nullptr: none
  uint64_t headroom = 0;
};

BoundInForce InForce(const Bound* bound, const ledger::Balance& balance) {
  if (bound == nullptr) return {};
  const uint64_t held =
      bound->container_only ? balance.held.container : balance.held.total();
  return {bound, bound->limit_bytes > held ? bound->limit_bytes - held : 0};
}

BoundInForce Tighter(BoundInForce a, BoundInForce b) {
  if (a.bound == nullptr) return b;
  if (b.bound == nullptr) return a;
  return b.headroom < a.headroom ? b : a;
}

void AddBudget(const Admission& admission, const ledger::Balance& balance,
               std::vector<MetricFamily>& families) {
  const std::shared_ptr<const Budget> budget = admission.budget();
  Family<2> limit(MetricType::Gauge, "purser_queue_memory_budget_bytes",
                  "The bound on queue memory that binds now, and where it "
                  "comes from. charged_to=\"node\" and \"container\" are not "
                  "to be added: a bound on all bytes shows as both.",
                  {"source", "charged_to"});
  Family<2> headroom(MetricType::Gauge, "purser_queue_memory_headroom_bytes",
                     "What that bound leaves.", {"source", "charged_to"});
  const BoundInForce total = InForce(budget->total_bound(), balance);
  const BoundInForce container =
      Tighter(total, InForce(budget->container_bound(), balance));
  for (const auto& [charged_to, bound] :
       {std::pair(kNode, total), std::pair(kContainer, container)}) {
    if (bound.bound == nullptr) continue;
    const std::string source = BudgetSourceName(bound.bound->source);
    limit.Add({source, charged_to},
              static_cast<double>(bound.bound->limit_bytes));
    headroom.Add({source, charged_to}, static_cast<double>(bound.headroom));
  }
  families.push_back(limit.Take());
  families.push_back(headroom.Take());
  families.push_back(
      Gauge("purser_queue_memory_overcommitted_bytes",
            "Queue memory held beyond a bound that was lowered since. Nothing "
            "grows until it is released.",
            admission.OvercommittedBytes()));
  Family<1> queue_pairs(MetricType::Gauge, "purser_queue_pair_budget",
                        "Queue pairs that the container was allotted, where it "
                        "has units of rdma/qp.",
                        {"source"});
  if (budget->queue_pairs())
    queue_pairs.Add({"plugin"},
                    static_cast<double>(budget->queue_pairs()->limit));
  families.push_back(queue_pairs.Take());
}

void AddClasses(const Admission& admission,
                std::vector<MetricFamily>& families) {
  Family<1> promised(MetricType::Gauge, "purser_class_floor_bytes",
                     "Queue memory that is kept for the class.", {"class"});
  Family<1> most(MetricType::Gauge, "purser_class_max_bytes",
                 "Queue memory that the class may hold at most.", {"class"});
  for (const ClassUse& use : admission.accounts().Use()) {
    promised.Add({use.name}, static_cast<double>(use.floor_bytes));
    most.Add({use.name}, static_cast<double>(use.max_bytes));
  }
  families.push_back(promised.Take());
  families.push_back(most.Take());
}

MetricFamily PressureFamily(const Admission& admission) {
  Family<1> family(MetricType::Gauge, "purser_memory_pressure_state",
                   "How short memory is for those who pay for queues. 0: "
                   "normal. 1: tight, nothing grows but classes marked core. "
                   "2: critical, nothing grows.",
                   {"scope"});
  for (const PressureScope scope :
       {PressureScope::kContainer, PressureScope::kNode})
    family.Add({PressureScopeName(scope)},
               static_cast<double>(admission.pressure(scope).state));
  return family.Take();
}

// ---- The memory model ----

const char* ExactnessName(queue_memory::Exactness exactness) {
  switch (exactness) {
    case queue_memory::Exactness::kExact:
      return "exact";
    case queue_memory::Exactness::kEstimated:
      return "estimated";
    case queue_memory::Exactness::kFallback:
      return "fallback";
  }
  return "unknown";
}

MetricFamily ModelFamily(const std::vector<Device*>& devices) {
  Family<3> family(MetricType::Gauge, "purser_queue_memory_model",
                   "How queue memory of the device is reckoned: by the "
                   "provider's own rule (exact), with assumed device values "
                   "(estimated), or by the textbook sum times a safety factor "
                   "(fallback). Always 1.",
                   {"device", "provider", "exactness"});
  constexpr queue_memory::QueuePairRequest kSample{.max_send_wr = 16,
                                                   .max_send_sge = 1,
                                                   .max_recv_wr = 16,
                                                   .max_recv_sge = 1};
  for (const Device* device : devices)
    family.Add({device->name(), queue_memory::ProviderName(device->provider()),
                ExactnessName(queue_memory::QueuePairMemory(
                                  device->provider(),
                                  device->capabilities().limits, kSample)
                                  .exactness)},
               1);
  return family.Take();
}

MetricFamily OpenFamily(const std::vector<Device*>& devices) {
  Family<1> family(MetricType::Gauge, "purser_device_open",
                   "1 while the sidecar has the device open, 0 from its "
                   "removal until it is back.",
                   {"device"});
  for (const Device* device : devices)
    family.Add({device->name()}, device->Opened().ok() ? 1 : 0);
  return family.Take();
}

MetricFamily MismatchFamily(const Counters& counters,
                            const std::vector<Device*>& devices) {
  Seeds1 seeds;
  for (const Device* device : devices) seeds.emplace_back(device->name());
  return CounterFamily(
      "purser_queue_memory_model_mismatches_total",
      "Queue pairs whose capacities, as written back by the device, contradict "
      "the memory model.",
      {"device"}, counters.model_mismatches.Snapshot(), seeds);
}

// ---- Counters ----

void AddCounters(const Counters& counters,
                 std::vector<MetricFamily>& families) {
  families.push_back(CounterFamily(
      "purser_admissions_total",
      "Requests to create a queue pair, by what became of them and why.",
      {"result", "reason"}, counters.admissions.Snapshot(),
      Seeds2{{"granted", "fits"},
             {"shrunk", "budget"},
             {"refused", "budget"},
             {"refused", "device_limit"},
             {"refused", "invalid"},
             {"refused", "create_failed"},
             {"refused", "qp_count"},
             {"refused", "pressure"},
             {"refused", "class_share"},
             {"shrunk", "class_share"}}));
  families.push_back(CounterFamily(
      "purser_memory_pressure_changes_total",
      "Changes of purser_memory_pressure_state, by the new state.",
      {"scope", "state"}, counters.pressure_changes.Snapshot(),
      Seeds2{{"container", "tight"}, {"node", "tight"}}));
  families.push_back(CounterFamily(
      "purser_create_failures_total",
      "Objects that the device failed to create, by errno.",
      {"object", "errno"}, counters.create_failures.Snapshot(),
      Seeds2{{"cq", "ENOMEM"}, {"mr", "ENOMEM"}, {"qp", "ENOMEM"}}));
  families.push_back(CounterFamily(
      "purser_posts_total", "Work requests that were posted.", {"operation"},
      counters.posts.Snapshot(), Seeds1{{"send"}, {"receive"}}));
  families.push_back(CounterFamily(
      "purser_post_failures_total",
      "Posts that failed, by errno. ENOMEM: the queue was full, or completions "
      "were not polled.",
      {"operation", "errno"}, counters.post_failures.Snapshot(),
      Seeds2{{"send", "ENOMEM"},
             {"send", "EINVAL"},
             {"receive", "ENOMEM"},
             {"receive", "EINVAL"}}));
  families.push_back(CounterFamily(
      "purser_completions_total",
      "Completions that were polled, by ibv_wc_status.", {"status"},
      counters.completions.Snapshot(), Seeds1{{"SUCCESS"}, {"WR_FLUSH_ERR"}}));
}

}  // namespace

Metrics::Metrics(Broker& broker, ledger::Ledger ledger,
                 const Admission& admission, const Counters& counters,
                 std::string version)
    : broker_(broker),
      ledger_(ledger),
      admission_(admission),
      counters_(counters),
      version_(std::move(version)) {}

std::vector<MetricFamily> Metrics::Collect() const {
  std::vector<MetricFamily> families;
  const auto queue_pairs = broker_.queue_pairs().All();
  const TotalsByClass totals = Sum(broker_.devices(), queue_pairs);
  families.push_back(MemoryFamily(totals));
  AddBudget(admission_, ledger_.balance(), families);
  families.push_back(PressureFamily(admission_));
  AddClasses(admission_, families);
  families.push_back(QueuePairsFamily(totals));
  AddCounters(counters_, families);
  families.push_back(
      Gauge("purser_completion_backlog",
            "Sends that were posted and whose completions were not yet polled.",
            Backlog(queue_pairs)));
  families.push_back(
      Gauge("purser_clients", "Attached clients.", broker_.clients().count()));
  families.push_back(Gauge("purser_memory_regions",
                           "Registered memory regions.",
                           broker_.regions().count()));
  families.push_back(Gauge("purser_registered_memory_bytes",
                           "Bytes of the registered memory regions.",
                           broker_.regions().bytes()));
  families.push_back(OpenFamily(broker_.devices()));
  families.push_back(ModelFamily(broker_.devices()));
  families.push_back(MismatchFamily(counters_, broker_.devices()));
  Family<1> build(MetricType::Gauge, "purser_build_info",
                  "The sidecar's version. Always 1.", {"version"});
  build.Add({version_}, 1);
  families.push_back(build.Take());
  return families;
}

}  // namespace purser::sidecar
