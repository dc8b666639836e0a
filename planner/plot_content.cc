// SPDX-License-Identifier: Apache-2.0
#include "planner/plot_content.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "planner/plot_style.h"
#include "planner/send_operations.h"
#include "queue_memory/fit.h"
#include "queue_memory/registry.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using queue_memory::QueuePairRequest;

constexpr size_t kMostMarks = 6;
constexpr size_t kMostOwnSges = 3;  // of the workload

// A figure of a group that does not depend on the device.
uint64_t Weight(const Group& group) {
  return queue_memory::TextbookBytes(group.request) * group.count;
}

// The heaviest groups, heaviest first.
std::vector<size_t> Heaviest(const Workload& workload) {
  std::vector<size_t> order(workload.groups.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const size_t count = std::min(order.size(), kMostMarks);
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
      order.end(), [&](size_t a, size_t b) {
        return Weight(workload.groups[a]) > Weight(workload.groups[b]);
      });
  order.resize(count);
  return order;
}

std::string SgesText(uint32_t sges) {
  return fmt::format("{} SGE{}", sges, sges == 1 ? "" : "s");
}

std::string ShapeText(const Group& group) {
  const QueuePairRequest& request = group.request;
  const std::string receives =
      !HasReceiveSide(group) || request.max_recv_wr == 0
          ? "sends alone"
          : fmt::format("as many receives of {}",
                        SgesText(request.max_recv_sge));
  return fmt::format(
      "Bytes of one {} queue pair like those of {}, with a completion queue of "
      "its own, by depth; {}, {} bytes inline",
      absl::AsciiStrToUpper(TypeName(request.type)), group.name, receives,
      request.max_inline_data);
}

std::string WhoPays(const Device& device) {
  const queue_memory::ProviderTraits& traits =
      queue_memory::TraitsOf(device.provider);
  if (traits.charges_container && traits.charges_node)
    return "container and node pay";
  return traits.charges_node ? "node pays" : "container pays";
}

bool Equal(const std::vector<Stair>& a, const std::vector<Stair>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Stair& one, const Stair& other) {
                      return one.last == other.last && one.bytes == other.bytes;
                    });
}

class Builder {
 public:
  explicit Builder(std::span<const Report> reports)
      : reports_(reports),
        heaviest_(Heaviest(*reports[0].asked)),
        shape_(reports[0].asked->groups[heaviest_[0]].request) {}

  PlotContent Build() {
    content_.shape = ShapeText(reports_[0].asked->groups[heaviest_[0]]);
    ChooseSges();
    for (const Report& report : reports_)
      content_.panels.push_back(PanelOf(report));
    if (reports_.size() == 1) MergeLines();
    for (Panel& panel : content_.panels) panel.bold = content_.bold;
    return std::move(content_);
  }

 private:
  void ChooseSges() {
    std::set<uint32_t> sges;
    for (const size_t index : heaviest_)
      if (sges.size() < kMostOwnSges)
        sges.insert(reports_[0].asked->groups[index].request.max_send_sge);
    for (const uint32_t usual : {4u, 1u, 16u, 8u, 2u})
      if (sges.size() < kLineStyles) sges.insert(usual);
    for (const uint32_t one : sges) {
      if (one == shape_.max_send_sge) content_.bold = sges_.size();
      sges_.push_back(one);
      content_.labels.push_back(SgesText(one));
    }
  }

  Panel PanelOf(const Report& report) const {
    Panel panel{.title = report.device.name,
                .note = WhoPays(report.device),
                .named_marks = reports_.size() == 1};
    for (const uint32_t sges : sges_) {
      QueuePairRequest request = shape_;
      request.max_send_sge = sges;
      panel.lines.push_back(StaircaseOf(report.device, request,
                                        kLeastDepthShown, kMostDepthShown));
    }
    if (!report.status.ok()) return panel;
    for (const size_t index : heaviest_)
      AddMark(report, report.planned->groups[index], &panel.marks);
    return panel;
  }

  // Groups in one place are one mark.
  static void AddMark(const Report& report, const Group& group,
                      std::vector<Panel::Mark>* marks) {
    const auto memory =
        queue_memory::QueuePairWithCompletionQueueMemory(
            report.device.provider, report.device.limits, group.request,
            queue_memory::CompletionQueueSize::kHeadroom)
            .memory;
    if (memory.refusal) return;
    const uint64_t bytes = memory.total().total();
    const uint32_t depth =
        std::max(group.request.max_send_wr, group.request.max_recv_wr);
    for (Panel::Mark& mark : *marks) {
      if (mark.depth != depth || mark.bytes != bytes) continue;
      mark.name += ", " + group.name;
      return;
    }
    marks->push_back({.name = group.name, .depth = depth, .bytes = bytes});
  }

  // Lines that are the same on the one device are one.
  void MergeLines() {
    std::vector<std::vector<Stair>> lines;
    std::vector<std::string> labels;
    size_t bold = 0;
    for (size_t i = 0; i < sges_.size(); ++i) {
      std::vector<Stair>& line = content_.panels[0].lines[i];
      size_t same = 0;
      while (same < lines.size() && !Equal(lines[same], line)) ++same;
      if (same == lines.size()) {
        lines.push_back(std::move(line));
        labels.emplace_back();
      }
      labels[same] += labels[same].empty() ? "" : ", ";
      labels[same] += std::to_string(sges_[i]);
      if (i == content_.bold) bold = same;
    }
    for (size_t i = 0; i < lines.size(); ++i) {
      labels[i] += labels[i] == "1" ? " SGE" : " SGEs";
      if (lines[i].empty()) labels[i] += ": refused";
    }
    content_.panels[0].lines = std::move(lines);
    content_.labels = std::move(labels);
    content_.bold = bold;
  }

  std::span<const Report> reports_;
  std::vector<size_t> heaviest_;
  QueuePairRequest shape_;
  std::vector<uint32_t> sges_;
  PlotContent content_;
};

}  // namespace

PlotContent ContentOf(std::span<const Report> reports) {
  return Builder(reports).Build();
}

}  // namespace purser::planner
