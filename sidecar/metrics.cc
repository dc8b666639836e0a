// SPDX-License-Identifier: Apache-2.0
#include "sidecar/metrics.h"

#include <utility>

#include "prometheus/metric_family.h"
#include "sidecar/metric_families.h"
#include "sidecar/queue_metrics.h"

namespace purser::sidecar {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr char kContainer[] = "container";
constexpr char kNode[] = "node";

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
  Family<0> given_back(MetricType::Counter, "purser_given_back_bytes_total",
                       "Queue memory that was in no use and was given back "
                       "while memory was critical.",
                       {});
  given_back.Add({}, static_cast<double>(counters.given_back_bytes));
  families.push_back(given_back.Take());
  families.push_back(
      CounterFamily("purser_create_failures_total",
                    "Objects that the device failed to create, by errno.",
                    {"object", "errno"}, counters.create_failures.Snapshot(),
                    Seeds2{{"cq", "ENOMEM"},
                           {"mr", "ENOMEM"},
                           {"qp", "ENOMEM"},
                           {"srq", "ENOMEM"}}));
  families.push_back(CounterFamily(
      "purser_destroy_failures_total",
      "Objects that the device refused to destroy when they were to end, by "
      "errno.",
      {"object", "errno"}, counters.destroy_failures.Snapshot(),
      Seeds2{{"qp", "EBUSY"}, {"cq", "EBUSY"}}));
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
             {"send", "EOPNOTSUPP"},
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
  AddQueues(broker_, families);
  AddBudget(admission_, ledger_.balance(), families);
  families.push_back(PressureFamily(admission_));
  AddClasses(admission_, families);
  AddCounters(counters_, families);
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
