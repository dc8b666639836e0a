// SPDX-License-Identifier: Apache-2.0
#include "planner/plot.h"

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "planner/plot_content.h"
#include "planner/plot_style.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using base::FormatBytes;

constexpr size_t kMostColumns = 3;

constexpr double kWidth = 1000, kMargin = 24, kHeader = 110;
constexpr double kAxis = 62;  // left of each panel, for its bytes
constexpr double kTitle = 26, kDepths = 34;  // above and below each panel
constexpr double kLargeHeight = 380, kSmallHeight = 170;
constexpr double kBarRow = 26, kBarHeight = 15, kBarName = 110, kBarText = 230;
constexpr double kLetter = 7.2;  // about, of a label

class Plotter {
 public:
  explicit Plotter(std::span<const Report> reports)
      : reports_(reports),
        content_(ContentOf(reports)),
        columns_(std::min(reports.size(), kMostColumns)),
        panel_height_(columns_ == 1 ? kLargeHeight : kSmallHeight) {}

  std::string Draw() {
    FindRange();
    const size_t rows = (reports_.size() + columns_ - 1) / columns_;
    const double bars_top = kHeader + static_cast<double>(rows) * RowHeight();
    const double height = bars_top + 50 + kMargin +
                          kBarRow * static_cast<double>(reports_.size());
    const std::string& name = reports_[0].asked->name;
    const std::string title =
        name.empty() ? "Queue memory" : "Queue memory of " + name;
    Svg svg(kWidth, height, kPlotStyle, title);
    svg.Rectangle({0, 0}, kWidth, height, "page");
    svg.Text({kMargin, 36}, "title", title);
    svg.Text({kMargin, 58}, "soft", content_.shape);
    Legend(&svg);
    for (size_t i = 0; i < content_.panels.size(); ++i)
      purser::planner::Draw(content_.panels[i], FrameOf(i), &svg);
    Bars(bars_top, &svg);
    return std::move(svg).Finish();
  }

 private:
  double RowHeight() const { return kTitle + panel_height_ + kDepths; }

  Frame FrameOf(size_t index) const {
    const double width = (kWidth - kMargin) / static_cast<double>(columns_);
    return {.corner = {width * static_cast<double>(index % columns_) + kAxis +
                           kMargin / 2,
                       kHeader + kTitle +
                           RowHeight() * static_cast<double>(index / columns_)},
            .width = width - kAxis - kMargin / 2,
            .height = panel_height_,
            .least_depth = kLeastDepthShown,
            .most_depth = kMostDepthShown + 1,
            .least_bytes = least_bytes_,
            .most_bytes = most_bytes_};
  }

  // One for all panels, so that they can be compared: in steps of four.
  void FindRange() {
    uint64_t least = UINT64_MAX, most = 1;
    const auto include = [&](uint64_t bytes) {
      least = std::min(least, bytes);
      most = std::max(most, bytes);
    };
    for (const Panel& panel : content_.panels) {
      for (const auto& line : panel.lines) {
        if (line.empty()) continue;
        include(line.front().bytes);
        include(line.back().bytes);
      }
      for (const Panel::Mark& mark : panel.marks) include(mark.bytes);
    }
    const int log2 = std::bit_width(std::min(least, most) | 1) - 1;
    least_bytes_ = uint64_t{1} << (log2 / 2 * 2);
    most_bytes_ = least_bytes_ * 4;
    while (most_bytes_ < most) most_bytes_ *= 4;
  }

  void Legend(Svg* svg) const {
    double x = kMargin;
    for (size_t i = 0; i < content_.labels.size(); ++i) {
      const bool bold = i == content_.bold;
      const std::string& label = content_.labels[i];
      svg->Line({x, 80}, {x + 30, 80},
                fmt::format("s{}{}", i, bold ? " bold" : ""));
      svg->Text({x + 37, 84}, bold ? "head" : "soft", label);
      x += 55 + kLetter * static_cast<double>(label.size());
    }
    svg->Circle({x + 6, 80}, 2.6, "c0");
    svg->Text({x + 15, 84}, "soft", "cliff: one more costs a fifth more");
    svg->Circle({x + 236, 80}, 4.5, "group");
    svg->Text({x + 247, 84}, "soft", "the workload's groups");
  }

  void Bars(double top, Svg* svg) const {
    svg->Text({kMargin, top + 20}, "head", "A pod's queues");
    Key(top, svg);
    double y = top + 34;
    for (const Report& report : reports_) {
      svg->Text({kMargin, y + 12}, "soft", report.device.name);
      Bar(report, y, svg);
      y += kBarRow;
    }
    if (!reports_[0].budget.has_value()) return;
    const double budget = BarEnd(*reports_[0].budget);
    svg->Line({budget, top + 28}, {budget, y - 4}, "budget");
    svg->Text({budget, y + 12}, "soft",
              fmt::format("to fit into: {}", FormatBytes(*reports_[0].budget)),
              "end");
  }

  void Key(double top, Svg* svg) const {
    double x = kMargin + kBarName + 24;
    for (const auto& [css_class, text, width] :
         {std::tuple{"container", "charged to the container", 190.0},
          std::tuple{"node", "charged to nobody: the node's", 216.0}}) {
      svg->Rectangle({x, top + 9}, 14, 12, css_class);
      svg->Text({x + 20, top + 20}, "soft", text);
      x += width;
    }
    svg->Line({x + 6, top + 8}, {x + 6, top + 22}, "textbook");
    svg->Text({x + 14, top + 20}, "soft", "textbook sum of the work queues");
  }

  double BarEnd(uint64_t bytes) const {
    uint64_t most = reports_[0].budget.value_or(1);
    for (const Report& report : reports_)
      most = std::max(
          {most, report.plan.pod.queues.total(), report.plan.pod.textbook});
    return kMargin + kBarName +
           (kWidth - 2 * kMargin - kBarName - kBarText) *
               (static_cast<double>(bytes) / static_cast<double>(most));
  }

  void Bar(const Report& report, double y, Svg* svg) const {
    const Totals& pod = report.plan.pod;
    const double start = BarEnd(0);
    if (report.refused())
      return svg->Text({start, y + 12}, "soft",
                       "refused: the device cannot make all of them");
    const double container = BarEnd(pod.queues.container);
    const double end = BarEnd(pod.queues.total());
    const double textbook = BarEnd(pod.textbook);
    svg->Rectangle({start, y}, container - start, kBarHeight, "container");
    svg->Rectangle({container, y}, end - container, kBarHeight, "node");
    svg->Line({textbook, y - 3}, {textbook, y + kBarHeight + 3}, "textbook");
    svg->Text(
        {std::max({end, textbook, BarEnd(report.budget.value_or(0))}) + 8,
         y + 12},
        "head",
        fmt::format("{}, {} rdma/wqe-mib", FormatBytes(pod.queues.total()),
                    base::FormatCount(report.plan.units())));
  }

  std::span<const Report> reports_;
  PlotContent content_;
  size_t columns_;
  double panel_height_;
  uint64_t least_bytes_ = 1, most_bytes_ = 4;
};

}  // namespace

std::string Plot(std::span<const Report> reports) {
  return reports.empty() ? "" : Plotter(reports).Draw();
}

}  // namespace purser::planner
