// SPDX-License-Identifier: Apache-2.0
#include "planner/panel.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

constexpr double kDot = 2.6;
constexpr double kMark = 4.5;
constexpr double kRoomOfDepth = 34;  // of a depth that is written at a cliff
constexpr double kRoomOfTick = 46;

double Part(double value, double least, double most) {
  return (std::log2(value) - std::log2(least)) /
         (std::log2(most) - std::log2(least));
}

class Drawing {
 public:
  Drawing(const Panel& panel, const Frame& frame, Svg* svg)
      : panel_(panel), frame_(frame), svg_(*svg) {}

  void Draw() {
    Axes();
    bool any = false;
    for (size_t i = 0; i < panel_.lines.size(); ++i) {
      if (i != panel_.bold) Line(i);
      any |= !panel_.lines[i].empty();
    }
    if (panel_.bold < panel_.lines.size()) Line(panel_.bold);
    Marks();
    if (!any)
      svg_.Text({frame_.corner.x + frame_.width / 2,
                 frame_.corner.y + frame_.height / 2},
                "soft", "no such queue pairs", "middle");
  }

 private:
  double Right() const { return frame_.corner.x + frame_.width; }
  double Bottom() const { return frame_.corner.y + frame_.height; }

  void Axes() {
    svg_.Text({frame_.corner.x, frame_.corner.y - 8}, "head", panel_.title);
    svg_.Text({Right(), frame_.corner.y - 8}, "soft", panel_.note, "end");
    for (uint64_t bytes = frame_.least_bytes; bytes <= frame_.most_bytes;
         bytes *= 4) {
      const double y = frame_.At(frame_.least_depth, bytes).y;
      svg_.Line({frame_.corner.x, y}, {Right(), y}, "grid");
      svg_.Text({frame_.corner.x - 6, y + 4}, "tick", base::FormatBytes(bytes),
                "end");
    }
    double free_from = 0;
    for (uint32_t depth = frame_.least_depth; depth <= frame_.most_depth;
         depth *= 2) {
      const double x = frame_.At(depth, frame_.least_bytes).x;
      svg_.Line({x, frame_.corner.y}, {x, Bottom()}, "grid");
      if (x < free_from) continue;
      free_from = x + kRoomOfTick;
      svg_.Text({x, Bottom() + 15}, "tick", fmt::format("{}", depth), "middle");
    }
    svg_.Line({frame_.corner.x, Bottom()}, {Right(), Bottom()}, "axis");
  }

  void Line(size_t index) {
    const std::vector<Stair>& stairs = panel_.lines[index];
    std::vector<Point> points;
    for (size_t i = 0; i < stairs.size(); ++i) {
      // Upright where one more costs more, not slanting to the next depth.
      if (i > 0 && stairs[i].first == stairs[i - 1].last + 1)
        points.push_back(frame_.At(stairs[i - 1].last, stairs[i].bytes));
      points.push_back(frame_.At(stairs[i].first, stairs[i].bytes));
      points.push_back(frame_.At(stairs[i].last, stairs[i].bytes));
    }
    const bool bold = index == panel_.bold;
    svg_.Path(points, fmt::format("s{}{}", index, bold ? " bold" : ""));
    for (const Stair& stair : stairs) {
      if (!stair.cliff) continue;
      svg_.Circle(
          frame_.At(stair.last, stair.bytes), kDot, fmt::format("c{}", index),
          fmt::format("{}: {}", stair.last, base::FormatBytes(stair.bytes)));
    }
    if (bold) WriteDepths(stairs);
  }

  // Of the cliffs, the highest first, as far as there is room.
  void WriteDepths(const std::vector<Stair>& stairs) {
    std::vector<std::pair<double, const Stair*>> cliffs;
    for (size_t i = 0; i + 1 < stairs.size(); ++i)
      if (stairs[i].cliff)
        cliffs.emplace_back(static_cast<double>(stairs[i + 1].bytes) /
                                static_cast<double>(stairs[i].bytes),
                            &stairs[i]);
    std::stable_sort(
        cliffs.begin(), cliffs.end(),
        [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<double> written;
    for (const auto& [height, stair] : cliffs) {
      const Point edge = frame_.At(stair->last, stair->bytes);
      const bool room =
          edge.x + kRoomOfDepth <= Right() &&
          std::none_of(written.begin(), written.end(), [&edge](double x) {
            return std::abs(edge.x - x) < kRoomOfDepth;
          });
      if (!room) continue;
      written.push_back(edge.x);
      svg_.Text({edge.x + 3, edge.y + 13}, "depth",
                fmt::format("{}", stair->last));
    }
  }

  void Marks() {
    for (const Panel::Mark& mark : panel_.marks) {
      if (mark.depth < frame_.least_depth || mark.depth > frame_.most_depth)
        continue;
      const Point at = frame_.At(mark.depth, mark.bytes);
      svg_.Circle(at, kMark, "group",
                  fmt::format("{}: {} at {}", mark.name,
                              base::FormatBytes(mark.bytes), mark.depth));
      if (panel_.named_marks)
        svg_.Text({at.x - 8, at.y - 8}, "name", mark.name, "end");
    }
  }

  const Panel& panel_;
  const Frame& frame_;
  Svg& svg_;
};

}  // namespace

Point Frame::At(uint32_t depth, uint64_t bytes) const {
  const double x = Part(depth, least_depth, most_depth);
  const double y =
      Part(static_cast<double>(bytes), static_cast<double>(least_bytes),
           static_cast<double>(most_bytes));
  return {.x = corner.x + width * x,
          .y = corner.y + height * (1 - std::clamp(y, 0.0, 1.0))};
}

void Draw(const Panel& panel, const Frame& frame, Svg* svg) {
  Drawing(panel, frame, svg).Draw();
}

}  // namespace purser::planner
