// SPDX-License-Identifier: Apache-2.0
//
// The ledger file under a process that scribbles over it and truncates it. The
// input is a list of operations of four bytes each: of applications, of the
// sidecar, and of the scribbler. Whatever is written: nobody crashes, the
// sidecar's own never exceeds the budget, no sum overflows; and after a round
// without scribbling, and the end of all applications, the ledger is sound and
// empty, and the whole budget can be had.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ledger/adjudicator.h"
#include "ledger/brokered_account.h"
#include "ledger/ledger_file.h"
#include "ledger/purser_ledger.h"
#include "tests/fakes/file_tree.h"
#include "tests/fuzz/fuzz.h"

namespace purser::ledger {
namespace {

constexpr uint64_t kBudget = 10000;

struct Operation {
  uint8_t kind, which;
  uint16_t value;
};

class Client {
 public:
  explicit Client(const std::string& path)
      : attached_(purser_ledger_attach(&ledger_, path.c_str()) == 0) {}
  ~Client() { purser_ledger_unmap(&ledger_); }
  Client(const Client&) = delete;
  bool attached() const { return attached_; }
  purser_ledger* ledger() { return &ledger_; }

 private:
  purser_ledger ledger_;
  bool attached_;
};

class Pod {
 public:
  explicit Pod(const fakes::FileTree& volume)
      : path_(volume.path(kFileName)),
        directory_(open(volume.root().c_str(), O_PATH | O_DIRECTORY)) {
    unlink(path_.c_str());
    fuzz::Require(Restart());
    scribbler_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
  }
  ~Pod() {
    close(scribbler_);
    close(directory_);
  }
  Pod(const Pod&) = delete;

  void Do(Operation operation) {
    Client* client = Of(operation.which);
    const purser_ledger_charge charge = {operation.value, operation.which, 1};
    const purser_ledger_charge other = {operation.which, operation.value, 1};
    switch (operation.kind % 14) {
      case 0:
        return Come(operation.which);
      case 1:
        clients_[operation.which % clients_.size()].reset();
        return;
      case 2:
        if (client != nullptr) purser_ledger_detach(client->ledger());
        clients_[operation.which % clients_.size()].reset();
        return;
      case 3:
        if (client != nullptr)
          purser_ledger_reserve(client->ledger(), &charge, nullptr);
        return;
      case 4:
        if (client != nullptr)
          purser_ledger_commit(client->ledger(), &charge, &other, nullptr);
        return;
      case 5:
        if (client != nullptr) purser_ledger_release(client->ledger(), &charge);
        return;
      case 6:
        return Reserve({operation.which, operation.value});
      case 7:
        return Release();
      case 8:
        account_->Adjudicate();
        return;
      case 9:
        if (operation.which % 16 == 0) Restart();
        return;
      case 10:
        // Of the operation's own bytes.
        return Scribble(operation.value % PURSER_LEDGER_WORDS,
                        uint64_t{operation.which} * 0x0101010101010101u);
      case 11:
        // What looks sound.
        return Scribble(
            operation.value % PURSER_LEDGER_WORDS,
            purser_ledger_encode(
                operation.value % PURSER_LEDGER_WORDS,
                operation.which == 255 ? PURSER_LEDGER_MAX : operation.which));
      case 12:
        return Flip(operation.value % PURSER_LEDGER_BYTES, operation.which);
      default:
        fuzz::Require(ftruncate(scribbler_,
                                operation.value % (PURSER_LEDGER_BYTES + 9)) ==
                      0);
    }
  }

  void CheckBudget() {
    const Balance balance = account_->balance();
    fuzz::Require(balance.held.total() <= kBudget);
    fuzz::Require(balance.held.total() == Sum());
    fuzz::Require(balance.leases == leases_.size());
  }

  void End() {
    account_->Adjudicate();
    fuzz::Require(account_->Adjudicate().repaired == 0);
    for (auto& client : clients_) client.reset();
    while (!leases_.empty()) Release();
    account_->Adjudicate();
    const Findings findings = account_->Adjudicate();
    fuzz::Require(findings.leases.held == Amounts{});
    fuzz::Require(findings.leases.slots_taken == 0);
    fuzz::Require(findings.repaired == 0 && findings.reclaimed == 0);
    fuzz::Require(findings.error == 0 && !findings.displaced);
    fuzz::Require(account_->Reserve({0, kBudget}).ok());
    account_->Release({0, kBudget});
    Client client(path_);
    const purser_ledger_charge all = {kBudget, 0, 1};
    fuzz::Require(client.attached());
    fuzz::Require(purser_ledger_reserve(client.ledger(), &all, nullptr) == 0);
  }

 private:
  // False: the file was damaged so far that it is no ledger of this version;
  // the sidecar does not start then, so the one before goes on.
  bool Restart() {
    account_.reset();
    adjudicator_.reset();
    file_ = std::make_unique<LedgerFile>();
    leases_.clear();
    Ledger::Format(state_);
    bool opened = file_->Open(directory_).ok();
    if (!opened) {
      // A person removes what is in its place.
      unlink(path_.c_str());
      file_ = std::make_unique<LedgerFile>();
      opened = file_->Open(directory_).ok();
      for (auto& client : clients_) client.reset();
      if (scribbler_ >= 0) {
        close(scribbler_);
        scribbler_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
      }
    }
    adjudicator_ = std::make_unique<Adjudicator>(*file_);
    account_ = std::make_unique<BrokeredAccount>(state_, *adjudicator_);
    return opened && account_->SetBounds(kBudget, kUnlimited) == 0 &&
           adjudicator_->Publish({}) == 0;
  }

  Client* Of(uint8_t which) { return clients_[which % clients_.size()].get(); }
  void Come(uint8_t which) {
    auto& client = clients_[which % clients_.size()];
    client.reset();
    client = std::make_unique<Client>(path_);
    if (!client->attached()) client.reset();
  }
  uint64_t Sum() const {
    uint64_t sum = 0;
    for (const Charge lease : leases_) sum += lease.total();
    return sum;
  }
  void Reserve(Charge charge) {
    if (account_->Reserve(charge).ok()) leases_.push_back(charge);
  }
  void Release() {
    if (leases_.empty()) return;
    account_->Release(leases_.back());
    leases_.pop_back();
  }
  void Scribble(uint32_t index, uint64_t word) {
    fuzz::Require(pwrite(scribbler_, &word, 8, off_t{index} * 8) == 8);
  }
  void Flip(uint32_t offset, uint8_t bits) {
    uint8_t byte = 0;
    fuzz::Require(pread(scribbler_, &byte, 1, offset) >= 0);
    byte ^= bits;
    fuzz::Require(pwrite(scribbler_, &byte, 1, offset) == 1);
  }

  const std::string path_;
  const int directory_;
  int scribbler_ = -1;
  LedgerState state_{};
  std::unique_ptr<LedgerFile> file_;
  std::unique_ptr<Adjudicator> adjudicator_;
  std::unique_ptr<BrokeredAccount> account_;
  std::array<std::unique_ptr<Client>, 4> clients_;
  std::vector<Charge> leases_;
};

}  // namespace
}  // namespace purser::ledger

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const purser::fakes::FileTree volume;
  purser::ledger::Pod pod(volume);
  for (; size >= 4; data += 4, size -= 4) {
    purser::ledger::Operation operation;
    operation.kind = data[0];
    operation.which = data[1];
    std::memcpy(&operation.value, data + 2, 2);
    pod.Do(operation);
    pod.CheckBudget();
  }
  pod.End();
  return 0;
}
