// SPDX-License-Identifier: Apache-2.0
#include "sidecar/queue_pair_shape.h"

#include <vector>

#include "gtest/gtest.h"

namespace purser::sidecar {
namespace {

QueuePairShape Shape(uint32_t send_wr) {
  QueuePairShape shape;
  shape.cap.max_send_wr = send_wr;
  return shape;
}

TEST(QueuePairShapesTest, OneForAllThatAreEqual) {
  QueuePairShapes shapes;
  const auto a = shapes.Intern(Shape(1)), b = shapes.Intern(Shape(2));
  EXPECT_EQ(shapes.Intern(Shape(1)), a);
  EXPECT_EQ(shapes.Intern(Shape(2)), b);
  EXPECT_NE(a, b);
}

TEST(QueuePairShapesTest, EveryFieldTells) {
  QueuePairShapes shapes;
  QueuePairShape shape;
  std::vector<std::shared_ptr<const QueuePairShape>> all;
  const auto add = [&] {
    all.push_back(shapes.Intern(shape));
    EXPECT_EQ(*all.back(), shape);
    for (size_t i = 0; i + 1 < all.size(); ++i) EXPECT_NE(all[i], all.back());
  };
  add();
  shape.type = IBV_QPT_UD;
  add();
  shape.send_ops = 1;
  add();
  for (uint32_t* field :
       {&shape.cap.max_send_wr, &shape.cap.max_recv_wr, &shape.cap.max_send_sge,
        &shape.cap.max_recv_sge, &shape.cap.max_inline_data,
        &shape.request.max_send_wr, &shape.request.send_ops,
        &shape.memory.send_ring.slots}) {
    *field = 1;
    add();
  }
  shape.memory.overhead.node = 1;
  add();
}

TEST(QueuePairShapesTest, ManyDifferentOnesAreForgottenNotMixedUp) {
  QueuePairShapes shapes;
  const auto first = shapes.Intern(Shape(0));
  for (uint32_t i = 1; i < 100; ++i)
    EXPECT_EQ(shapes.Intern(Shape(i))->cap.max_send_wr, i);
  EXPECT_EQ(*shapes.Intern(Shape(0)), *first);
}

}  // namespace
}  // namespace purser::sidecar
