// SPDX-License-Identifier: Apache-2.0
#include "sidecar/clients.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace purser::sidecar {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(ClientsTest, NamesClientsByUnguessableTokens) {
  Clients clients(1000);
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.insert(clients.Add("app").value());
  EXPECT_EQ(ids.size(), 100u);
  for (const std::string& id : ids) {
    EXPECT_THAT(id, MatchesRegex("[0-9a-f]{32}"));
    EXPECT_EQ(clients.NameOf(id).value(), "app");
  }
  EXPECT_EQ(clients.count(), 100u);
}

TEST(ClientsTest, AnEndedClientIsUnauthenticated) {
  Clients clients(10);
  const std::string id = clients.Add("app").value();
  EXPECT_TRUE(clients.IsLive(id));
  clients.Remove(id);
  clients.Remove(id);
  EXPECT_FALSE(clients.IsLive(id));
  EXPECT_TRUE(absl::IsUnauthenticated(clients.NameOf(id).status()));
  const absl::Status missing = clients.NameOf("").status();
  EXPECT_TRUE(absl::IsUnauthenticated(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("missing"));
}

TEST(ClientsTest, RefusesWhatIsNoName) {
  Clients clients(10);
  EXPECT_TRUE(clients.Add(std::string(63, 'x')).ok());
  for (const std::string& name :
       {std::string(64, 'x'), std::string("a\nb"), std::string("\x7f"),
        std::string("ä"), std::string("a\0b", 3)})
    EXPECT_TRUE(absl::IsInvalidArgument(clients.Add(name).status())) << name;
  EXPECT_EQ(clients.count(), 1u);
}

TEST(ClientsTest, HoldsMaxClients) {
  Clients clients(2);
  const std::string first = clients.Add("a").value();
  ASSERT_TRUE(clients.Add("b").ok());
  const absl::Status full = clients.Add("c").status();
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()), HasSubstr("maxClients is 2"));
  clients.Remove(first);
  EXPECT_TRUE(clients.Add("c").ok());
}

}  // namespace
}  // namespace purser::sidecar
