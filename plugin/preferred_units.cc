// SPDX-License-Identifier: Apache-2.0
#include "plugin/preferred_units.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace purser::plugin {
namespace {

class Choice {
 public:
  Choice(std::vector<HcaUnits> hcas, Placement placement, Company company)
      : hcas_(std::move(hcas)),
        taken_(hcas_.size()),
        placement_(placement),
        company_(company) {}

  void TakeMust() {
    for (size_t i = 0; i < hcas_.size(); ++i)
      Take(i, hcas_[i].must_include.size(), hcas_[i].must_include);
  }

  // False: nothing is left.
  bool TakeMore(size_t wanted) {
    const std::map<int, size_t> left = LeftByNode();
    size_t best = hcas_.size();
    for (size_t i = 0; i < hcas_.size(); ++i) {
      if (hcas_[i].available.empty()) continue;
      if (best == hcas_.size() ||
          Order(i, wanted, left) < Order(best, wanted, left))
        best = i;
    }
    if (best == hcas_.size()) return false;
    Take(best, company_ == Company::kTogether ? wanted : 1,
         hcas_[best].available);
    return true;
  }

  std::vector<std::string>& chosen() { return chosen_; }

 private:
  void Take(size_t hca, size_t count, std::vector<std::string>& from) {
    const auto end =
        from.begin() + static_cast<ptrdiff_t>(std::min(count, from.size()));
    if (end == from.begin()) return;
    chosen_.insert(chosen_.end(), from.begin(), end);
    taken_[hca] += static_cast<size_t>(end - from.begin());
    nodes_.insert(hcas_[hca].numa_node);
    from.erase(from.begin(), end);
  }

  std::map<int, size_t> LeftByNode() const {
    std::map<int, size_t> left;
    for (const HcaUnits& hca : hcas_)
      left[hca.numa_node] += hca.available.size();
    return left;
  }

  size_t HcasOfNode(int numa_node) const {
    return static_cast<size_t>(
        std::count_if(hcas_.begin(), hcas_.end(), [&](const HcaUnits& hca) {
          return hca.numa_node == numa_node && !hca.available.empty();
        }));
  }

  // The least is taken first; false is less than true.
  std::tuple<bool, bool, bool, bool, bool, size_t, size_t, size_t> Order(
      size_t i, size_t wanted, const std::map<int, size_t>& left) const {
    const HcaUnits& hca = hcas_[i];
    const size_t count = hca.available.size();
    const bool together = company_ == Company::kTogether;
    const bool used_node = nodes_.contains(hca.numa_node);
    const bool node_suffices = left.at(hca.numa_node) >= wanted;
    const bool suffices = together && count >= wanted;
    // Where it suffices the placement decides, else that which goes furthest.
    const bool fewest_first = suffices && placement_ == Placement::kPacked;
    return {together && taken_[i] == 0,
            !(used_node && node_suffices),
            together && !suffices,
            !node_suffices,
            !used_node,
            together ? 0 : kMany - std::min(wanted, HcasOfNode(hca.numa_node)),
            together ? 0 : taken_[i],
            fewest_first ? count : kMany - count};
  }

  static constexpr size_t kMany = static_cast<size_t>(-1) / 2;
  std::vector<HcaUnits> hcas_;
  std::vector<size_t> taken_;  // of each
  std::set<int> nodes_;        // of those taken
  const Placement placement_;
  const Company company_;
  std::vector<std::string> chosen_;
};

}  // namespace

std::vector<std::string> PreferUnits(std::vector<HcaUnits> hcas, size_t size,
                                     Placement placement, Company company) {
  Choice choice(std::move(hcas), placement, company);
  choice.TakeMust();
  while (choice.chosen().size() < size &&
         choice.TakeMore(size - choice.chosen().size()))
    continue;
  return std::move(choice.chosen());
}

}  // namespace purser::plugin
