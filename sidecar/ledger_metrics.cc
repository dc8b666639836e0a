// SPDX-License-Identifier: Apache-2.0
#include "sidecar/ledger_metrics.h"

#include "sidecar/metric_families.h"

namespace purser::sidecar {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily Single(MetricType type, const char* name, const char* help,
                    uint64_t value) {
  Family<0> family(type, name, help, {});
  family.Add({}, static_cast<double>(value));
  return family.Take();
}

}  // namespace

std::vector<MetricFamily> LedgerMetrics::Collect() const {
  const PodLedger::Report report = ledger_.report();
  const ledger::Leases& leases = report.last.leases;
  Family<1> bytes(MetricType::Gauge, "purser_ledger_lease_bytes",
                  "Queue memory that applications lease in the ledger file for "
                  "queue pairs of their own.",
                  {"charged_to"});
  bytes.Add({"container"},
            static_cast<double>(leases.known[PURSER_LEDGER_CONTAINER_BYTES]));
  bytes.Add({"node"},
            static_cast<double>(leases.known[PURSER_LEDGER_NODE_BYTES]));
  Family<1> reserves(MetricType::Counter, "purser_ledger_reserves_total",
                     "Reserves of applications in the ledger file, as they "
                     "count them.",
                     {"result"});
  reserves.Add({"granted"}, static_cast<double>(report.counts.granted));
  reserves.Add({"refused"}, static_cast<double>(report.counts.refused));
  const bool sound = report.last.error == 0 && !report.last.displaced &&
                     leases.slots_unknown == 0;
  return {
      bytes.Take(),
      Single(MetricType::Gauge, "purser_ledger_lease_queue_pairs",
             "Queue pairs that applications lease in the ledger file.",
             leases.known[PURSER_LEDGER_QUEUE_PAIRS]),
      Single(MetricType::Gauge, "purser_ledger_slots_taken",
             "Processes that hold a slot of the ledger file, of 256.",
             leases.slots_taken),
      Single(MetricType::Gauge, "purser_ledger_slots_unknown",
             "Of these: what they hold was lost by damage. Nothing is granted "
             "until they end.",
             leases.slots_unknown),
      reserves.Take(),
      Single(MetricType::Counter, "purser_ledger_slots_reclaimed_total",
             "Slots of processes that ended without returning them.",
             report.counts.reclaimed),
      Single(MetricType::Counter, "purser_ledger_repaired_words_total",
             "Words of the ledger file that were damaged, and repaired.",
             report.counts.repaired),
      Single(MetricType::Gauge, "purser_ledger_sound",
             "0 while the ledger file cannot be written, is displaced, or has "
             "leases that are not known.",
             sound ? 1 : 0),
  };
}

}  // namespace purser::sidecar
