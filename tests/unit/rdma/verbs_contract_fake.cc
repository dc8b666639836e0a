// SPDX-License-Identifier: Apache-2.0
//
// The fake as the subject of verbs_contract_*_test.cc.
#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/fake_verbs.h"
#include "tests/unit/rdma/verbs_contract.h"

namespace purser::rdma {
namespace {

struct FakeSubject : ContractSubject {
  FakeSubject() {
    fake.AddDevice(fakes::RxeDevice());
    sysfs.AddDevice(fakes::SysfsRxe("rxe0", "dummy0"));
    sysfs_root = sysfs.sysfs_root();
  }
  Verbs& verbs() override { return fake; }

  fakes::FileTree tree;
  fakes::FakeSysfs sysfs{tree};
  fakes::FakeVerbs fake;
};

}  // namespace

std::unique_ptr<ContractSubject> MakeContractSubject() {
  return std::make_unique<FakeSubject>();
}

}  // namespace purser::rdma
