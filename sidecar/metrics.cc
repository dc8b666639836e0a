// SPDX-License-Identifier: Apache-2.0
#include "sidecar/metrics.h"

#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "prometheus/metric_family.h"
#include "rdma/queue_pair_states.h"

namespace purser::sidecar {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr char kContainer[] = "container";
constexpr char kNode[] = "node";
constexpr char kDefaultClass[] = "default";

// One family; `names` are its labels, in the order in which Add() takes their
// values.
template <size_t kLabels>
class Family {
 public:
  Family(MetricType type, const char* name, const char* help,
         std::array<const char*, kLabels> names)
      : names_(names) {
    family_.name = name;
    family_.help = help;
    family_.type = type;
  }

  void Add(const std::array<std::string, kLabels>& values, double value) {
    ClientMetric& metric = family_.metric.emplace_back();
    for (size_t i = 0; i < kLabels; ++i)
      metric.label.push_back({names_[i], values[i]});
    (family_.type == MetricType::Counter ? metric.counter.value
                                         : metric.gauge.value) = value;
  }

  MetricFamily Take() { return std::move(family_); }

 private:
  const std::array<const char*, kLabels> names_;
  MetricFamily family_;
};

template <typename... Labels>
using Counts = std::map<std::tuple<Labels...>, uint64_t>;
using Seeds1 = std::vector<std::tuple<std::string>>;
using Seeds2 = std::vector<std::tuple<std::string, std::string>>;

// A counter family of `counts`; the `seeds` are there even if never counted.
template <typename... Labels>
MetricFamily CounterFamily(const char* name, const char* help,
                           std::array<const char*, sizeof...(Labels)> names,
                           Counts<Labels...> counts,
                           const std::vector<std::tuple<Labels...>>& seeds) {
  for (const auto& seed : seeds) counts.emplace(seed, 0);
  Family<sizeof...(Labels)> family(MetricType::Counter, name, help, names);
  for (const auto& [labels, count] : counts)
    family.Add(
        std::apply(
            [](const Labels&... values) {
              return std::array<std::string, sizeof...(Labels)>{values...};
            },
            labels),
        static_cast<double>(count));
  return family.Take();
}

MetricFamily Gauge(const char* name, const char* help, uint64_t value) {
  Family<0> family(MetricType::Gauge, name, help, {});
  family.Add({}, static_cast<double>(value));
  return family.Take();
}

// ---- Queue pairs and their memory ----

// The provider's arrays beside the rings count as overhead.
std::array<std::pair<const char*, queue_memory::Charge>, 5> ByQueue(
    const queue_memory::QueueMemory& memory) {
  return {{{"send", memory.send},
           {"receive", memory.receive},
           {"completion", memory.completion},
           {"shared_receive", memory.shared_receive},
           {"overhead", memory.arrays + memory.overhead}}};
}

struct Totals {
  // device, queue, class
  std::map<std::array<std::string, 3>, queue_memory::Charge> memory;
  // device, type, state, class
  std::map<std::array<std::string, 4>, uint64_t> queue_pairs;
  uint64_t backlog = 0;
};

// What a device without queue pairs shows.
void AddZeros(const Device& device, Totals& totals) {
  for (const auto& [queue, charge] : ByQueue({}))
    totals.memory[{device.name(), queue, kDefaultClass}];
  for (int state = IBV_QPS_RESET; state <= IBV_QPS_ERR; ++state)
    totals.queue_pairs[{device.name(), rdma::QueuePairTypeName(IBV_QPT_RC),
                        rdma::StateName(static_cast<ibv_qp_state>(state)),
                        kDefaultClass}];
}

Totals Sum(Broker& broker) {
  Totals totals;
  for (const Device* device : broker.devices()) AddZeros(*device, totals);
  for (const auto& queue_pair : broker.queue_pairs().All()) {
    const BrokeredQueuePair::Facts& facts = queue_pair->facts();
    const std::string& device = facts.device->name();
    for (const auto& [queue, charge] : ByQueue(facts.memory))
      totals.memory[{device, queue, facts.class_name}] += charge;
    ++totals.queue_pairs[{device, rdma::QueuePairTypeName(facts.type),
                          rdma::StateName(queue_pair->KnownState()),
                          facts.class_name}];
    totals.backlog += queue_pair->work_queue().outstanding_sends();
  }
  return totals;
}

MetricFamily MemoryFamily(const Totals& totals) {
  Family<4> family(MetricType::Gauge, "purser_queue_memory_bytes",
                   "Memory of the queues that the sidecar holds, by what it is "
                   "for and by who is charged: the container's cgroup, or the "
                   "node's kernel memory, which no cgroup sees.",
                   {"device", "queue", "charged_to", "class"});
  for (const auto& [labels, charge] : totals.memory) {
    const auto& [device, queue, class_name] = labels;
    family.Add({device, queue, kContainer, class_name},
               static_cast<double>(charge.container));
    family.Add({device, queue, kNode, class_name},
               static_cast<double>(charge.node));
  }
  return family.Take();
}

MetricFamily QueuePairsFamily(const Totals& totals) {
  Family<4> family(MetricType::Gauge, "purser_queue_pairs",
                   "Queue pairs that the sidecar holds, by state.",
                   {"device", "type", "state", "class"});
  for (const auto& [labels, count] : totals.queue_pairs)
    family.Add(labels, static_cast<double>(count));
  return family.Take();
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

void AddBudget(const Budget& budget, const ledger::Balance& balance,
               std::vector<MetricFamily>& families) {
  Family<2> limit(MetricType::Gauge, "purser_queue_memory_budget_bytes",
                  "The bound on queue memory that binds now, and where it "
                  "comes from. charged_to=\"node\" and \"container\" are not "
                  "to be added: a bound on all bytes shows as both.",
                  {"source", "charged_to"});
  Family<2> headroom(MetricType::Gauge, "purser_queue_memory_headroom_bytes",
                     "What that bound leaves.", {"source", "charged_to"});
  const BoundInForce total = InForce(budget.total_bound(), balance);
  const BoundInForce container =
      Tighter(total, InForce(budget.container_bound(), balance));
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
             {"refused", "create_failed"}}));
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

Metrics::Metrics(Broker& broker, ledger::Ledger ledger, const Budget& budget,
                 const Counters& counters, std::string version)
    : broker_(broker),
      ledger_(ledger),
      budget_(budget),
      counters_(counters),
      version_(std::move(version)) {}

std::vector<MetricFamily> Metrics::Collect() const {
  std::vector<MetricFamily> families;
  const Totals totals = Sum(broker_);
  families.push_back(MemoryFamily(totals));
  AddBudget(budget_, ledger_.balance(), families);
  families.push_back(QueuePairsFamily(totals));
  AddCounters(counters_, families);
  families.push_back(
      Gauge("purser_completion_backlog",
            "Sends that were posted and whose completions were not yet polled.",
            totals.backlog));
  families.push_back(
      Gauge("purser_clients", "Attached clients.", broker_.clients().count()));
  families.push_back(Gauge("purser_memory_regions",
                           "Registered memory regions.",
                           broker_.regions().count()));
  families.push_back(Gauge("purser_registered_memory_bytes",
                           "Bytes of the registered memory regions.",
                           broker_.regions().bytes()));
  families.push_back(ModelFamily(broker_.devices()));
  families.push_back(MismatchFamily(counters_, broker_.devices()));
  Family<1> build(MetricType::Gauge, "purser_build_info",
                  "The sidecar's version. Always 1.", {"version"});
  build.Add({version_}, 1);
  families.push_back(build.Take());
  return families;
}

}  // namespace purser::sidecar
