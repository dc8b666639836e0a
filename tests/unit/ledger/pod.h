// SPDX-License-Identifier: Apache-2.0
//
// A shared volume with a ledger file: what the sidecar has of it, and what any
// process of the pod may do to it.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "ledger/adjudicator.h"
#include "ledger/brokered_account.h"
#include "ledger/ledger_file.h"
#include "ledger/purser_ledger.h"
#include "tests/fakes/file_tree.h"

namespace purser::ledger {

// Lives in the test's process, with open file descriptions of its own.
class SidecarSide {
 public:
  explicit SidecarSide(const std::string& volume) {
    Ledger::Format(state_);
    const int directory = open(volume.c_str(), O_PATH | O_DIRECTORY);
    outcome_ = file_.Open(directory);
    close(directory);
    if (outcome_.ok()) adjudicator_ = std::make_unique<Adjudicator>(file_);
    if (adjudicator_)
      account_ = std::make_unique<BrokeredAccount>(state_, *adjudicator_);
  }
  const OpenOutcome& outcome() const { return outcome_; }
  LedgerFile& file() { return file_; }
  Adjudicator& adjudicator() { return *adjudicator_; }
  BrokeredAccount& account() { return *account_; }

 private:
  LedgerState state_{};
  LedgerFile file_;
  OpenOutcome outcome_;
  std::unique_ptr<Adjudicator> adjudicator_;
  std::unique_ptr<BrokeredAccount> account_;
};

// A process of the pod that wrote through its own descriptor.
class Scribbler {
 public:
  explicit Scribbler(const std::string& path)
      : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("open " + path);
  }
  ~Scribbler() { close(fd_); }
  Scribbler(const Scribbler&) = delete;
  void Write(uint32_t index, uint64_t word) {
    if (pwrite(fd_, &word, 8, off_t{index} * 8) != 8)
      throw std::runtime_error("pwrite");
  }
  uint64_t Read(uint32_t index) {
    uint64_t word = 0;
    if (pread(fd_, &word, 8, off_t{index} * 8) < 0)
      throw std::runtime_error("pread");
    return word;
  }
  void Truncate(off_t size) {
    if (ftruncate(fd_, size) != 0) throw std::runtime_error("ftruncate");
  }

 private:
  int fd_;
};

// While it lives, this process can write no file (EFBIG): what a full volume
// does, on any file system.
class NothingCanBeWritten {
 public:
  NothingCanBeWritten() {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit nothing = {0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &nothing);
  }
  ~NothingCanBeWritten() { setrlimit(RLIMIT_FSIZE, &before_); }
  NothingCanBeWritten(const NothingCanBeWritten&) = delete;

 private:
  rlimit before_;
};

// An application's handle. Destroyed without detach it is a killed process: the
// kernel closes its descriptor.
class Client {
 public:
  explicit Client(const std::string& path)
      : error_(purser_ledger_attach(&ledger_, path.c_str())) {}
  ~Client() { Die(); }
  Client(const Client&) = delete;
  void Die() { purser_ledger_unmap(&ledger_); }

  int Reserve(uint64_t container, uint64_t node, uint64_t queue_pairs = 1) {
    const purser_ledger_charge charge = {container, node, queue_pairs};
    return purser_ledger_reserve(&ledger_, &charge, &why_);
  }
  int Commit(Charge from, Charge to) {
    const purser_ledger_charge reserved = {from.container, from.node, 1};
    const purser_ledger_charge actual = {to.container, to.node, 1};
    return purser_ledger_commit(&ledger_, &reserved, &actual, &why_);
  }
  int Release(uint64_t container, uint64_t node, uint64_t queue_pairs = 1) {
    const purser_ledger_charge charge = {container, node, queue_pairs};
    return purser_ledger_release(&ledger_, &charge);
  }
  void Detach() { purser_ledger_detach(&ledger_); }

  int error() const { return error_; }
  const purser_ledger_refusal& why() const { return why_; }
  purser_ledger& ledger() { return ledger_; }
  // The index of a word of its slot.
  uint32_t Word(uint32_t word) const {
    return purser_ledger_slot_word(ledger_.slot, word);
  }
  uint32_t State() const { return PURSER_LEDGER_STATES + ledger_.slot; }

 private:
  purser_ledger ledger_;
  purser_ledger_refusal why_{};
  int error_;
};

class Pod {
 public:
  Pod() { Restart(); }
  // The sidecar is gone and another comes. A program that this process just
  // started has its descriptors, and so its lock, until the end of the exec.
  void Restart() {
    for (int tries = 0; tries < 1'000'000; ++tries) {
      sidecar_.reset();
      sidecar_ = std::make_unique<SidecarSide>(volume_.root());
      if (sidecar_->outcome().ok()) return;
      if (sidecar_->outcome().fault != FileFault::kInUse) break;
      std::this_thread::yield();
    }
    throw std::runtime_error("the ledger cannot be opened");
  }
  std::string path() const { return volume_.path(kFileName); }
  const fakes::FileTree& volume() const { return volume_; }
  SidecarSide& sidecar() { return *sidecar_; }
  Adjudicator& adjudicator() { return sidecar_->adjudicator(); }
  BrokeredAccount& account() { return sidecar_->account(); }
  // All bytes, container, node, queue pairs.
  void SetBudget(const Amounts& budget) {
    if (adjudicator().SetBudget(budget) != 0)
      throw std::runtime_error("SetBudget");
  }

 private:
  fakes::FileTree volume_;
  std::unique_ptr<SidecarSide> sidecar_;
};

}  // namespace purser::ledger
