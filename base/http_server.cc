// SPDX-License-Identifier: Apache-2.0
#include "base/http_server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/status_macros.h"
#include "base/tcp_listener.h"

namespace purser::base {
namespace {

constexpr int kWorkers = 2;
constexpr timeval kPatience = {.tv_sec = 2, .tv_usec = 0};
constexpr timeval kAcceptPause = {.tv_sec = 0, .tv_usec = 100000};
constexpr ev_ssize_t kLongestHead = 8192;
constexpr ev_ssize_t kLongestBody = 8192;  // of a request; none is of use
// Each connection has two events: its socket and its time-out.
constexpr int kMostEvents = 2 * 128;
constexpr size_t kMostWaiting = 64;
// libevent itself would answer 501 to the ones left out.
constexpr ev_uint16_t kAllMethods =
    EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
    EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
    EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH;

HttpResponse CallHandler(const HttpHandler& handler) {
  // Handlers are of our making, but what they call may throw, and an exception
  // must not end the process from a server thread.
  try {
    return handler();
  } catch (const std::exception& error) {
    return {.code = 500, .body = absl::StrCat("failed: ", error.what(), "\n")};
  } catch (...) {
    return {.code = 500, .body = "failed: unknown exception\n"};
  }
}

// Ends the connection, too: scrapes come further apart than kPatience.
void Send(evhttp_request* request, const HttpResponse& response) {
  evkeyvalq* headers = evhttp_request_get_output_headers(request);
  const auto add = [headers](const char* name, const std::string& value) {
    evhttp_add_header(headers, name, value.c_str());
  };
  add("Content-Type", response.content_type);
  add("Content-Length", std::to_string(response.body.size()));
  add("Cache-Control", "no-store");
  add("X-Content-Type-Options", "nosniff");
  if (response.code == 405) add("Allow", "GET, HEAD");
  add("Connection", "close");
  if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
    evbuffer_add(evhttp_request_get_output_buffer(request),
                 response.body.data(), response.body.size());
  evhttp_send_reply(request, response.code, nullptr, nullptr);
}

bool IsFull(event_base* base) {
  return event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) > kMostEvents;
}

// New connections stay in the kernel's backlog until the pause is over. Without
// it, running out of descriptors would spin.
void PauseAccepting(evconnlistener* listener, void*) {
  const auto resume = [](evutil_socket_t, short, void* arg) {
    auto* paused = static_cast<evconnlistener*>(arg);
    if (IsFull(evconnlistener_get_base(paused)))
      PauseAccepting(paused, nullptr);
    else
      evconnlistener_enable(paused);
  };
  evconnlistener_disable(listener);
  event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, resume,
                  listener, &kAcceptPause);
}

template <auto kFree>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

struct Call {
  evhttp_request* request = nullptr;
  const HttpHandler* handler = nullptr;
  HttpResponse response;
};

}  // namespace

// libevent belongs to the loop's thread, which reads requests and writes
// responses; the workers take calls of handlers from `waiting` and leave them
// in `done`.
struct HttpServer::Server {
  ~Server();
  absl::Status Listen(const std::string& address);
  bool SetUpEvents();
  absl::Status StartThreads();
  void Loop();
  void Work();
  void OnRequest(evhttp_request* request);
  bool Enqueue(evhttp_request* request, const HttpHandler& handler);
  void SendDone();

  std::map<std::string, HttpHandler> handlers;
  TcpListener socket;
  FileDescriptor wake;  // an eventfd: `done` or `stopping` changed
  std::unique_ptr<event_base, Deleter<event_base_free>> base;
  std::unique_ptr<evhttp, Deleter<evhttp_free>> http;
  std::unique_ptr<event, Deleter<event_free>> on_wake;

  std::mutex mutex;                 // guards the following
  std::condition_variable changed;  // `waiting` or `stopping`
  bool stopping = false;
  std::deque<Call> waiting;
  std::vector<Call> done;

  std::jthread loop;
  std::vector<std::jthread> workers;
};

HttpServer::Server::~Server() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  workers.clear();
  if (wake.valid()) eventfd_write(wake.get(), 1);
}

absl::Status HttpServer::Server::Listen(const std::string& address) {
  PURSER_ASSIGN_OR_RETURN(socket, ListenTcp(address));
  wake = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid())
    return absl::ErrnoToStatus(errno, "eventfd for the HTTP server");
  base.reset(event_base_new());
  if (base == nullptr || !SetUpEvents())
    return absl::ResourceExhaustedError(
        "the HTTP server cannot start its event loop: out of memory or of file "
        "descriptors");
  return absl::OkStatus();
}

bool HttpServer::Server::SetUpEvents() {
  on_wake.reset(event_new(
      base.get(), wake.get(), EV_READ | EV_PERSIST,
      [](int, short, void* arg) { static_cast<Server*>(arg)->SendDone(); },
      this));
  if (on_wake == nullptr || event_add(on_wake.get(), nullptr) != 0)
    return false;
  http.reset(evhttp_new(base.get()));
  if (http == nullptr) return false;
  evconnlistener* listener =
      evconnlistener_new(base.get(), nullptr, nullptr, LEV_OPT_CLOSE_ON_EXEC, 0,
                         socket.socket.get());
  if (listener == nullptr ||
      evhttp_bind_listener(http.get(), listener) == nullptr)
    return false;
  evconnlistener_set_error_cb(listener, PauseAccepting);
  // Called for each connection; null leaves its making to libevent.
  const auto on_accept = [](event_base* of, void* arg) -> bufferevent* {
    if (IsFull(of)) PauseAccepting(static_cast<evconnlistener*>(arg), nullptr);
    return nullptr;
  };
  evhttp_set_bevcb(http.get(), on_accept, listener);
  evhttp_set_timeout_tv(http.get(), &kPatience);
  evhttp_set_max_headers_size(http.get(), kLongestHead);
  evhttp_set_max_body_size(http.get(), kLongestBody);
  evhttp_set_allowed_methods(http.get(), kAllMethods);
  const auto on_request = [](evhttp_request* request, void* arg) {
    static_cast<Server*>(arg)->OnRequest(request);
  };
  evhttp_set_gencb(http.get(), on_request, this);
  return true;
}

absl::Status HttpServer::Server::StartThreads() {
  try {
    loop = std::jthread([this] { Loop(); });
    for (int i = 0; i < kWorkers; ++i) workers.emplace_back([this] { Work(); });
  } catch (const std::system_error& error) {
    return absl::ErrnoToStatus(
        error.code().value(),
        "cannot start a thread of the HTTP server; raise the limit of tasks "
        "(pids.max, RLIMIT_NPROC)");
  }
  return absl::OkStatus();
}

void HttpServer::Server::Loop() {
  // libevent writes to sockets that the client may have closed.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  event_base_dispatch(base.get());
}

void HttpServer::Server::OnRequest(evhttp_request* request) {
  const evhttp_cmd_type method = evhttp_request_get_command(request);
  if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD)
    return Send(request,
                {.code = 405, .body = "only GET and HEAD are served\n"});
  const char* path =
      evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
  const auto found = handlers.find(path == nullptr ? "" : path);
  if (found == handlers.end()) {
    HttpResponse response{.code = 404, .body = "not found; there are:\n"};
    for (const auto& [known, handler] : handlers)
      absl::StrAppend(&response.body, known, "\n");
    Send(request, response);
  } else if (!Enqueue(request, found->second)) {
    Send(request, {.code = 503, .body = "too many requests wait already\n"});
  }
}

bool HttpServer::Server::Enqueue(evhttp_request* request,
                                 const HttpHandler& handler) {
  const std::lock_guard lock(mutex);
  if (waiting.size() >= kMostWaiting) return false;
  waiting.push_back({.request = request, .handler = &handler});
  changed.notify_one();
  return true;
}

void HttpServer::Server::Work() {
  while (true) {
    Call call;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return stopping || !waiting.empty(); });
      if (stopping) return;
      call = std::move(waiting.front());
      waiting.pop_front();
    }
    call.response = CallHandler(*call.handler);
    const std::lock_guard lock(mutex);
    done.push_back(std::move(call));
    eventfd_write(wake.get(), 1);
  }
}

void HttpServer::Server::SendDone() {
  eventfd_t count = 0;
  eventfd_read(wake.get(), &count);
  std::vector<Call> calls;
  {
    const std::lock_guard lock(mutex);
    calls.swap(done);
    if (stopping) event_base_loopbreak(base.get());
  }
  for (const Call& call : calls) Send(call.request, call.response);
}

HttpServer::HttpServer(std::unique_ptr<Server> server)
    : server_(std::move(server)) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return server_->socket.port; }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Create(
    const std::string& address, std::map<std::string, HttpHandler> handlers) {
  auto server = std::make_unique<Server>();
  server->handlers = std::move(handlers);
  PURSER_RETURN_IF_ERROR(server->Listen(address));
  PURSER_RETURN_IF_ERROR(server->StartThreads());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(server)));
}

}  // namespace purser::base
