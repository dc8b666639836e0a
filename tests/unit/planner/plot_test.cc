// SPDX-License-Identifier: Apache-2.0
#include "planner/plot.h"

#include <vector>

#include "gmock/gmock.h"
#include "planner/svg.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kTwo =
    "version: v1\nname: two\ngroups:\n"
    "- {name: a, count: 9, maxSendWr: 256, maxSendSge: 4, maxRecvWr: 256}\n"
    "- {name: b, count: 3, maxSendWr: 512, maxSendSge: 4, maxRecvWr: 512}\n"
    "- {name: c, count: 3, maxSendWr: 512, maxSendSge: 4, maxRecvWr: 512}\n";

std::string PlotOn(const std::vector<std::string>& profiles,
                   std::string_view text,
                   std::optional<uint64_t> budget = std::nullopt) {
  std::vector<Report> reports;
  for (const std::string& profile : profiles)
    reports.push_back(MakeReport(Shared(text), On(profile), budget));
  return Plot(reports);
}

size_t Count(const std::string& text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + 1))
    ++count;
  return count;
}

// Every element that is opened is closed, and no figure is none.
void ExpectWellFormed(const std::string& svg) {
  EXPECT_THAT(svg, testing::StartsWith("<svg xmlns="));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_EQ(Count(svg, "<text"), Count(svg, "</text>"));
  EXPECT_EQ(Count(svg, "<title"), Count(svg, "</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf\"")));
}

TEST(PlotTest, OneDevice) {
  const std::string svg = PlotOn({"rxe"}, kTwo);
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr("Queue memory of two"));
  EXPECT_THAT(svg, HasSubstr(">4, 8, 16 SGEs<"));  // alike on this device
  EXPECT_THAT(svg, HasSubstr(">1, 2 SGEs<"));
  EXPECT_THAT(svg, HasSubstr(">255</text>"));  // a cliff
  EXPECT_THAT(svg, HasSubstr("<title>255: "));
  EXPECT_THAT(svg, HasSubstr(">a</text>"));
  EXPECT_THAT(svg, HasSubstr(">b, c</text>"));  // in one place
  EXPECT_THAT(svg, HasSubstr("node pays"));
  EXPECT_THAT(svg, HasSubstr("rdma/wqe-mib</text>"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
}

TEST(PlotTest, AllDevicesSideBySide) {
  std::vector<std::string> all;
  for (const Device& device : AllDevices()) all.push_back(device.name);
  const std::string svg = PlotOn(all, kTwo);
  ExpectWellFormed(svg);
  for (const std::string& name : all)
    EXPECT_EQ(Count(svg, ">" + name + "</text>"), 2u) << name;
  EXPECT_THAT(svg, HasSubstr("no such queue pairs"));  // efa
  EXPECT_THAT(svg, HasSubstr("refused: the device cannot make all of them"));
}

TEST(PlotTest, TheBudgetToFitIntoIsALine) {
  EXPECT_THAT(PlotOn({"mlx5"}, kTwo, 64 << 20),
              HasSubstr("to fit into: 64 MiB"));
  // Where nothing fits there is still a picture.
  ExpectWellFormed(PlotOn({"mlx5"}, kTwo, 1));
}

TEST(PlotTest, WorkloadsOfEverySize) {
  ExpectWellFormed(PlotOn({"mana"}, Groups("- {name: a, maxSendWr: 1, "
                                           "maxRecvWr: 0}\n")));
  ExpectWellFormed(PlotOn({"mana"}, Groups("- {name: a, maxSendWr: 16777216, "
                                           "maxSendSge: 65536}\n")));
  ExpectWellFormed(PlotOn({"mlx5"}, Groups("- {name: a, type: srd}\n")));
}

TEST(SvgTest, TextIsEscaped) {
  Svg svg(10, 10, "", "a & \"b\"");
  svg.Text({1, 2}, "soft", "<script>", "end");
  svg.Circle({1, 2}, 3, "c", "x > y");
  const std::string text = std::move(svg).Finish();
  EXPECT_THAT(text, HasSubstr("<title>a &amp; &quot;b&quot;</title>"));
  EXPECT_THAT(text, HasSubstr(">&lt;script&gt;</text>"));
  EXPECT_THAT(text, HasSubstr("<title>x &gt; y</title>"));
}

}  // namespace
}  // namespace purser::planner
