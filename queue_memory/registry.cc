// SPDX-License-Identifier: Apache-2.0
#include "queue_memory/registry.h"

#include <array>

#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

// By the value of Provider.
constexpr const ProviderRules* kRules[] = {
    &kTextbookRules, &kMlx5Rules,  &kMlx4Rules,   &kIrdmaRules, &kBnxtReRules,
    &kEfaRules,      &kErdmaRules, &kHnsRules,    &kManaRules,  &kQedrRules,
    &kRxeRules,      &kSiwRules,   &kOcrdmaRules, &kCxgb4Rules, &kIonicRules};
constexpr size_t kCount = std::size(kRules);
static_assert(kCount == static_cast<size_t>(Provider::kIonic) + 1);

constexpr std::array<Provider, kCount - 1> kKnown = [] {
  std::array<Provider, kCount - 1> known{};
  for (size_t i = 0; i < known.size(); ++i)
    known[i] = static_cast<Provider>(i + 1);
  return known;
}();

// Until "RDMA/rxe: Bump up default maximum values used via uverbs", Linux 5.16;
// memory regions and shared receive queues were even fewer in some kernels.
constexpr uint32_t kOldRxeWr = 0x4000;
constexpr ObjectCounts kOldRxeCounts = {
    .max_qp = 0x10000, .max_cq = 16384, .max_mr = 4096, .max_srq = 4096};

constexpr DeviceProfile kProfiles[] = {
    {"mlx5", Provider::kMlx5, "ConnectX-5 and later, 64-byte completions"},
    {"mlx5_cqe128",
     Provider::kMlx5,
     "MLX5_CQE_SIZE=128, or a cache line of 128 bytes",
     {.cqe_size = 128}},
    {"mlx4", Provider::kMlx4, "ConnectX-3"},
    {"irdma", Provider::kIrdma, "E810"},
    {"irdma_gen1",
     Provider::kIrdma,
     "X722",
     {.max_sge = 3, .max_inline_data = 48, .irdma = {.generation = 1}}},
    {"irdma_gen3",
     Provider::kIrdma,
     "E830 and later, 64-byte completions",
     {.cqe_size = 64, .irdma = {.generation = 3}}},
    {"bnxt_re", Provider::kBnxtRe, "BCM575xx, static entries"},
    {"bnxt_re_p7",
     Provider::kBnxtRe,
     "BCM576xx, variable entries",
     {.bnxt_re = {.variable_wqe = true, .msn_table = true}}},
    {"bnxt_re_pow2",
     Provider::kBnxtRe,
     "BCM575xx with a kernel that rounds rings up to powers of two",
     {.bnxt_re = {.power_of_two_rings = true}}},
    {"efa", Provider::kEfa, "AWS"},
    {"erdma", Provider::kErdma, "Alibaba"},
    {"hns", Provider::kHns, "HIP09, receive inline granted"},
    {"hns_noinl",
     Provider::kHns,
     "no receive inline: HIP08, or the kernel does not grant it",
     {.hns = {.receive_inline = false}}},
    {"mana", Provider::kMana, "Azure"},
    {"qedr", Provider::kQedr, "FastLinQ"},
    {"rxe", Provider::kRxe, "soft-RoCE of current kernels"},
    {"rxe_6.1",
     Provider::kRxe,
     "soft-RoCE of Linux 5.16 to 6.5: writes back what was asked",
     {.writes_back_real_slots = false}},
    {"rxe_5.15",
     Provider::kRxe,
     "soft-RoCE of Linux 5.13 to 5.15: low limits",
     {.max_qp_wr = kOldRxeWr,
      .max_srq_wr = kOldRxeWr,
      .writes_back_real_slots = false},
     kOldRxeCounts},
    {"rxe_5.12",
     Provider::kRxe,
     "soft-RoCE of Linux 5.6 to 5.12: low limits, 64-byte completions",
     {.max_qp_wr = kOldRxeWr,
      .max_srq_wr = kOldRxeWr,
      .cqe_size = 64,
      .writes_back_real_slots = false},
     kOldRxeCounts},
    {"rxe_5.5",
     Provider::kRxe,
     "soft-RoCE before Linux 5.6: low limits, 64-byte completions, 400 bytes "
     "inline",
     {.max_qp_wr = kOldRxeWr,
      .max_srq_wr = kOldRxeWr,
      .max_inline_data = 400,
      .cqe_size = 64,
      .writes_back_real_slots = false},
     kOldRxeCounts},
    {"siw", Provider::kSiw, "soft-iWARP"},
    {"ocrdma", Provider::kOcrdma, "OneConnect"},
    {"cxgb4", Provider::kCxgb4, "T4 to T6"},
    {"ionic", Provider::kIonic, "Pensando"},
};

// Kernel drivers that tell more than the provider.
struct DriverProfile {
  const char* driver;
  const char* profile;
};
constexpr DriverProfile kDriverProfiles[] = {{"i40e", "irdma_gen1"},
                                             {"idpf", "irdma_gen3"}};

bool Equal(const char* a, const char* b) {
  if (a == nullptr || b == nullptr) return false;
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

const DeviceProfile* ProfileNamed(const char* name) {
  for (const DeviceProfile& profile : kProfiles)
    if (Equal(name, profile.name)) return &profile;
  return nullptr;
}

// "RDMA/rxe: Move work queue code to subroutines" came with Linux 6.6 and into
// the last of two stable series.
bool WritesBackRealSlots(const KernelVersion& version) {
  if (version >= KernelVersion{6, 6, 0}) return true;
  if (version.release != 6) return false;
  return (version.series == 5 && version.patch >= 3) ||
         (version.series == 4 && version.patch >= 16);
}

}  // namespace

const ProviderRules& RulesOf(Provider provider) {
  const auto index = static_cast<size_t>(provider);
  return *kRules[index < kCount ? index : 0];
}

std::span<const Provider> KnownProviders() { return kKnown; }

const ProviderTraits& TraitsOf(Provider provider) {
  return RulesOf(provider).traits;
}

const char* ProviderName(Provider provider) { return TraitsOf(provider).name; }

Provider ProviderFromName(const char* name) {
  for (const Provider provider : kKnown) {
    const ProviderTraits& traits = TraitsOf(provider);
    if (Equal(name, traits.name)) return provider;
    for (const char* kernel_name : traits.kernel_names)
      if (Equal(name, kernel_name)) return provider;
  }
  return Provider::kUnknown;
}

std::span<const DeviceProfile> KnownProfiles() { return kProfiles; }

const DeviceProfile* FindProfile(const char* name) {
  for (const DriverProfile& driver : kDriverProfiles)
    if (Equal(name, driver.driver)) return ProfileNamed(driver.profile);
  if (const DeviceProfile* profile = ProfileNamed(name)) return profile;
  const Provider provider = ProviderFromName(name);
  return provider == Provider::kUnknown ? nullptr
                                        : ProfileNamed(ProviderName(provider));
}

const DeviceProfile* ProfileOfKernel(Provider provider,
                                     const KernelVersion& version) {
  if (provider != Provider::kRxe) return nullptr;
  if (version < KernelVersion{5, 6, 0}) return ProfileNamed("rxe_5.5");
  if (version < KernelVersion{5, 13, 0}) return ProfileNamed("rxe_5.12");
  if (version < KernelVersion{5, 16, 0}) return ProfileNamed("rxe_5.15");
  return ProfileNamed(WritesBackRealSlots(version) ? "rxe" : "rxe_6.1");
}

}  // namespace purser::queue_memory
