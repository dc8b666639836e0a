// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace purser::planner {

inline constexpr int kLineStyles = 5;  // classes s0 to s4

// Of plots. Colours that are told apart by those who see fewer of them (Okabe
// and Ito), lighter on dark; lines differ by their dashes as well.
inline constexpr char kPlotStyle[] =
    R"(text { font: 12px system-ui, sans-serif; fill: #222 }
.page { fill: #fff }
.title { font-size: 19px; font-weight: 600 }
.head { font-size: 13px; font-weight: 600 }
.soft, .tick { fill: #5b5b5b }
.tick, .depth { font-size: 11px }
.name { font-size: 13px; font-weight: 600 }
.name, .depth { paint-order: stroke; stroke: #fff; stroke-width: 3px }
.grid { stroke: #e4e4e4 }
.axis { stroke: #8a8a8a }
.s0, .s1, .s2, .s3, .s4 { fill: none; stroke-width: 1.6; stroke-linejoin: round }
.s0 { stroke: #0072b2 }
.s1 { stroke: #c24e00; stroke-dasharray: 7 3 }
.s2 { stroke: #007a5a; stroke-dasharray: 2 2 }
.s3 { stroke: #a4408a; stroke-dasharray: 9 3 2 3 }
.s4 { stroke: #6b5900; stroke-dasharray: 4 2 }
.bold { stroke-width: 2.8; stroke-dasharray: none }
.c0 { fill: #0072b2 } .c1 { fill: #c24e00 } .c2 { fill: #007a5a }
.c3 { fill: #a4408a } .c4 { fill: #6b5900 }
.group { fill: #fff; stroke: #222; stroke-width: 1.6 }
.container { fill: #4a90c4 }
.node { fill: #d9822b }
.textbook { stroke: #222; stroke-width: 2 }
.budget { stroke: #222; stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) {
text { fill: #e6e6e6 }
.page { fill: #15181c }
.soft, .tick { fill: #a9b0b8 }
.name, .depth { stroke: #15181c }
.grid { stroke: #2c3138 }
.axis { stroke: #7d858e }
.s0 { stroke: #56b4e9 } .s1 { stroke: #f08a4b } .s2 { stroke: #3ecf9f }
.s3 { stroke: #e08fcb } .s4 { stroke: #e3c94c }
.c0 { fill: #56b4e9 } .c1 { fill: #f08a4b } .c2 { fill: #3ecf9f }
.c3 { fill: #e08fcb } .c4 { fill: #e3c94c }
.group { fill: #15181c; stroke: #e6e6e6 }
.container { fill: #3f86bd }
.node { fill: #c9742a }
.textbook, .budget { stroke: #e6e6e6 }
}
)";

}  // namespace purser::planner
