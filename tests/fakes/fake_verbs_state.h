// SPDX-License-Identifier: Apache-2.0
//
// Inside the verbs fake: its objects and their state. All of it is guarded by
// the fabric's mutex.
#pragma once

#include <infiniband/verbs.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tests/fakes/fake_verbs.h"

namespace purser::fakes {

// Prints what was done wrong and aborts.
[[noreturn]] void Die(const std::string& message);

struct DeviceState {
  FakeDevice device;
  ibv_device verbs_device{};
  bool disassociated = false;
  std::map<std::string, int> objects;  // live ones, by kind
};

// An eventfd that counts what lies in a queue beside it.
class EventFd {
 public:
  EventFd();
  ~EventFd();
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;
  int fd() const { return fd_; }
  void Add();
  void Take();
  void Close();

 private:
  int fd_;
};

// What all objects have. They stay in memory after their end, so that a use
// after it is told instead of crashing.
struct FakeContext;
struct Tracked {
  FakeVerbs::State* owner = nullptr;
  FakeContext* fake_context = nullptr;
  std::string kind;
  bool alive = true;
  int children = 0;        // objects that must go first
  int unacknowledged = 0;  // events read but not yet acknowledged
  virtual ~Tracked() = default;
};

struct FakeContext : ibv_context, Tracked {
  std::shared_ptr<DeviceState> device_state;
  EventFd async;
  std::deque<ibv_async_event> events;
};
struct FakePd : ibv_pd, Tracked {};
struct FakeMr : ibv_mr, Tracked {
  int access = 0;
};

struct FakeCq;
struct FakeChannel : ibv_comp_channel, Tracked {
  EventFd event;
  std::deque<FakeCq*> events;
};

struct FakeQp;
struct FakeSrq;
struct Cqe {
  ibv_wc wc{};
  FakeQp* qp = nullptr;
  FakeSrq* srq = nullptr;  // whose receive it was; null: the queue pair's own
  bool is_send = false;
  uint64_t index = 0;  // of the request among those posted to its queue
  bool solicited = false;
};

struct FakeCq : ibv_cq, Tracked {
  std::deque<Cqe> entries;
  enum class Notify { kNone, kSolicited, kNext } notify = Notify::kNone;
  bool overrun = false;
};

struct SendRequest {
  ibv_send_wr wr{};
  std::vector<ibv_sge> sges;
  std::vector<uint8_t> inline_data;
  uint64_t index = 0;
};
struct ReceiveRequest {
  uint64_t wr_id = 0;
  std::vector<ibv_sge> sges;
  uint64_t index = 0;
};

struct FakeSrq : ibv_srq, Tracked {
  uint32_t slots = 0, max_sge = 0;
  std::deque<ReceiveRequest> receives;
  uint64_t posted = 0, freed = 0;
};

struct FakeQp : ibv_qp, Tracked {
  FakeRings rings;
  uint64_t send_ops_flags = 0;  // 0: any
  bool signal_all = false;
  ibv_qp_attr attr{};
  // The device's view; ibv_qp::state is libibverbs' own.
  ibv_qp_state device_state = IBV_QPS_RESET;
  std::deque<SendRequest> sends;
  std::deque<ReceiveRequest> receives;
  uint64_t sends_posted = 0, sends_freed = 0;
  uint64_t receives_posted = 0, receives_freed = 0;
  uint32_t send_psn = 0, receive_psn = 0;

  FakeSrq* fake_srq() { return static_cast<FakeSrq*>(srq); }
  // Where messages to it go.
  std::deque<ReceiveRequest>& inbox() {
    return srq == nullptr ? receives : fake_srq()->receives;
  }
};

struct VerbsFabric {
  std::mutex mutex;
  std::condition_variable
      changed;  // an event was acknowledged, a device closed
  uint32_t next_qp_num = 17;
  uint32_t next_key = 0x1000;
  bool held = false;
  std::map<uint32_t, FakeQp*> queue_pairs;  // live ones, by qp_num
  std::map<uint32_t, FakeQp*> pending;      // those with sends to carry out
  std::map<uint32_t, FakeMr*> regions;      // live ones, by lkey (= rkey)
};

struct Failure {
  int successes = 0;
  int error_number = 0;
};

struct CallState {
  uint64_t calls = 0;
  std::deque<Failure> failures;
  int always = 0;
};

struct FakeVerbs::State {
  std::shared_ptr<VerbsFabric> fabric;
  std::map<std::string, std::shared_ptr<DeviceState>> devices;
  std::vector<std::shared_ptr<DeviceState>> removed;
  std::map<std::string, CallState, std::less<>> calls;
  std::shared_ptr<std::function<void(std::string_view)>> observer;
  std::vector<std::unique_ptr<Tracked>> objects;  // all there ever were

  CallState& CallNamed(std::string_view call);
  DeviceState& Device(const std::string& name);
  bool IsBeingRemoved(const std::string& name) const;

  template <typename T>
  T* Add(const std::string& kind, FakeContext* context);
  void Retire(Tracked& object);
};

template <typename T>
T* FakeVerbs::State::Add(const std::string& kind, FakeContext* context) {
  auto object = std::make_unique<T>();
  T* added = object.get();
  added->owner = this;
  added->kind = kind;
  added->fake_context = context;
  if (context != nullptr) {
    if constexpr (!std::is_same_v<T, FakeContext>) added->context = context;
    ++context->children;
    ++context->device_state->objects[kind];
  }
  objects.push_back(std::move(object));
  return added;
}

// The start of a verbs call: tells the observer, takes the fabric's lock and
// says which errno a test wants back.
class Call {
 public:
  Call(FakeVerbs::State& state, const char* name);
  int injected() const { return injected_; }
  // Waits until the object's events are acknowledged, as libibverbs does; dies
  // after ten seconds.
  void AwaitAcknowledged(const Tracked& object, const char* what);

 private:
  VerbsFabric& fabric_;
  std::unique_lock<std::mutex> lock_;
  int injected_ = 0;
};

// The fake's object behind a libibverbs pointer; dies unless it is alive and
// this fake's.
template <typename T, typename Verb>
T& Live(const FakeVerbs::State& state, Verb* object, const char* call) {
  if (object == nullptr) Die(std::string(call) + " of a null pointer");
  T& fake = *static_cast<T*>(object);
  if (!fake.alive)
    Die(std::string(call) + " of a " + fake.kind + " that was destroyed");
  if (fake.owner != &state)
    Die(std::string(call) + " of a " + fake.kind + " of another FakeVerbs");
  return fake;
}

// ---- fake_objects.cc ----
// "ibv_alloc_pd rxe0".
std::string What(const char* call, const FakeContext& context);
// The errno of a call on a context: what a test wants, or the lost device's.
int ContextError(const Call& call, const FakeContext& context);
// Of a destroying call. libibverbs takes EIO from a lost device for success.
int DestroyError(const Call& call, const Tracked& object);
// Of one object more than `limit`.
int TooMany(const FakeContext& context, const char* kind, int limit);
// The object that an event is about; nullptr for ports and the device.
Tracked* ObjectOf(const ibv_async_event& event);
// Forgets the events of an object that is about to go and that nobody has read.
void DropAsyncEvents(Tracked& object);
void PushAsyncEvent(FakeContext& context, const ibv_async_event& event);

// ---- fake_posting.cc ----
ibv_context_ops DataPathOps();

// ---- fake_wire.cc ----
// Carries out the queue pair's first send; false when it cannot go on now.
bool CarryOne(VerbsFabric& fabric, FakeQp& qp);
// All that can go on now, on the whole fabric.
void CarryAll(VerbsFabric& fabric);
void FlushSends(VerbsFabric& fabric, FakeQp& qp);
void Flush(VerbsFabric& fabric, FakeQp& qp);

inline bool IsHardware(const FakeQp& qp) {
  return qp.fake_context->device_state->device.hardware;
}

}  // namespace purser::fakes
