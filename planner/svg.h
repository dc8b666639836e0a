// SPDX-License-Identifier: Apache-2.0
//
// Writes SVG: the few shapes that plots here are made of, their look by class.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace purser::planner {

struct Point {
  double x = 0, y = 0;
};

class Svg {
 public:
  // `style` is CSS; `title` is read out to who cannot see the picture.
  Svg(double width, double height, std::string_view style,
      std::string_view title);

  void Line(Point from, Point to, std::string_view css_class);
  void Path(std::span<const Point> points, std::string_view css_class);
  void Rectangle(Point corner, double width, double height,
                 std::string_view css_class);
  // Shows `tip` where a pointer rests on it; "": nothing.
  void Circle(Point center, double radius, std::string_view css_class,
              std::string_view tip = "");
  // `anchor`: start, middle or end.
  void Text(Point base, std::string_view css_class, std::string_view text,
            std::string_view anchor = "start");

  std::string Finish() &&;

 private:
  std::string text_;
};

}  // namespace purser::planner
