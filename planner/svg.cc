// SPDX-License-Identifier: Apache-2.0
#include "planner/svg.h"

#include <utility>

#include "absl/strings/str_replace.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

std::string Escape(std::string_view text) {
  return absl::StrReplaceAll(
      std::string(text),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

}  // namespace

Svg::Svg(double width, double height, std::string_view style,
         std::string_view title)
    : text_(fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} "
          "{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" role=\"img\">\n"
          "<title>{}</title>\n<style>\n{}</style>\n",
          width, height, width, height, Escape(title), style)) {}

void Svg::Line(Point from, Point to, std::string_view css_class) {
  text_ += fmt::format(
      "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
      "y2=\"{:.1f}\"/>\n",
      css_class, from.x, from.y, to.x, to.y);
}

void Svg::Path(std::span<const Point> points, std::string_view css_class) {
  if (points.empty()) return;
  text_ += fmt::format("<path class=\"{}\" d=\"M", css_class);
  for (const Point& point : points)
    text_ += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
  text_.back() = '"';
  text_ += "/>\n";
}

void Svg::Rectangle(Point corner, double width, double height,
                    std::string_view css_class) {
  text_ += fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
      "height=\"{:.1f}\"/>\n",
      css_class, corner.x, corner.y, width, height);
}

void Svg::Circle(Point center, double radius, std::string_view css_class,
                 std::string_view tip) {
  text_ += fmt::format(
      "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"",
      css_class, center.x, center.y, radius);
  text_ += tip.empty()
               ? "/>\n"
               : fmt::format("><title>{}</title></circle>\n", Escape(tip));
}

void Svg::Text(Point base, std::string_view css_class, std::string_view text,
               std::string_view anchor) {
  text_ += fmt::format(
      "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}"
      "</text>\n",
      css_class, base.x, base.y, anchor, Escape(text));
}

std::string Svg::Finish() && { return std::move(text_) + "</svg>\n"; }

}  // namespace purser::planner
