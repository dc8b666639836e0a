// SPDX-License-Identifier: Apache-2.0
#include "base/http_server.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/status_macros.h"
#include "base/tcp_listener.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kThreads = 2;
// A scraper sends its request at once and reads the response as it comes; who
// is slower than this only keeps a thread from others.
constexpr std::chrono::seconds kReadLimit{2};
constexpr std::chrono::seconds kWriteLimit{5};
constexpr size_t kLongestRequest = 8192;

struct Request {
  std::string method, path;
};

std::string_view Reason(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Unknown";
  }
}

// "GET /metrics?x=y HTTP/1.1". An empty method: malformed.
Request ParseRequestLine(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last <= first + 1) return {};
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.0" && version != "HTTP/1.1") return {};
  std::string_view target = line.substr(first + 1, last - first - 1);
  target = target.substr(0, target.find_first_of("?#"));
  return {.method = std::string(line.substr(0, first)),
          .path = std::string(target)};
}

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

std::string Serialize(const HttpResponse& response, bool with_body) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
      "{}Connection: close\r\n\r\n{}",
      response.code, Reason(response.code), response.content_type,
      response.body.size(), response.code == 405 ? "Allow: GET, HEAD\r\n" : "",
      with_body ? response.body : "");
}

}  // namespace

struct HttpServer::Server {
  TcpListener listener;
  FileDescriptor stop;  // an eventfd, readable from Stop() on
  std::map<std::string, HttpHandler> handlers;
  std::vector<std::jthread> threads;

  void Serve();
  void ServeConnection(int connection);
  HttpResponse Respond(const Request& request) const;
  // Each returns false when time is up, the peer is gone or the server stops.
  bool WaitFor(int fd, short events, Clock::time_point deadline) const;
  bool ReadHead(int connection, std::string* head) const;
  void Write(int connection, std::string_view text) const;
  void CloseGently(int connection) const;
};

bool HttpServer::Server::WaitFor(int fd, short events,
                                 Clock::time_point deadline) const {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd fds[] = {{.fd = fd, .events = events, .revents = 0},
                    {.fd = stop.get(), .events = POLLIN, .revents = 0}};
    const int ready = poll(fds, 2, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready > 0) return fds[1].revents == 0;
  }
}

// Reads up to the empty line that ends the head.
bool HttpServer::Server::ReadHead(int connection, std::string* head) const {
  const Clock::time_point deadline = Clock::now() + kReadLimit;
  char buffer[1024];
  while (head->size() <= kLongestRequest) {
    if (!WaitFor(connection, POLLIN, deadline)) return false;
    const ssize_t count = recv(connection, buffer, sizeof(buffer), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) return false;
    head->append(buffer, static_cast<size_t>(count));
    if (head->find("\r\n\r\n") != std::string::npos) return true;
  }
  return true;
}

void HttpServer::Server::Write(int connection, std::string_view text) const {
  const Clock::time_point deadline = Clock::now() + kWriteLimit;
  while (!text.empty()) {
    const ssize_t count =
        send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      text.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EAGAIN && errno != EINTR) {
      return;
    } else if (!WaitFor(connection, POLLOUT, deadline)) {
      return;
    }
  }
}

// Closing with unread input would reset the connection and could take the
// response with it: reads a little of what still comes until the peer closes.
void HttpServer::Server::CloseGently(int connection) const {
  shutdown(connection, SHUT_WR);
  const Clock::time_point deadline = Clock::now() + kReadLimit;
  char buffer[1024];
  for (int i = 0; i < 64 && WaitFor(connection, POLLIN, deadline); ++i)
    if (recv(connection, buffer, sizeof(buffer), 0) <= 0) return;
}

HttpResponse HttpServer::Server::Respond(const Request& request) const {
  if (request.method.empty())
    return {.code = 400, .body = "not an HTTP/1 request\n"};
  if (request.method != "GET" && request.method != "HEAD")
    return {.code = 405, .body = "only GET and HEAD are served\n"};
  if (const auto found = handlers.find(request.path); found != handlers.end())
    return CallHandler(found->second);
  HttpResponse response{.code = 404, .body = "not found; there are:\n"};
  for (const auto& [path, handler] : handlers)
    absl::StrAppend(&response.body, path, "\n");
  return response;
}

void HttpServer::Server::ServeConnection(int connection) {
  std::string head;
  if (!ReadHead(connection, &head)) return;
  if (head.size() > kLongestRequest) {
    Write(connection,
          Serialize({.code = 431, .body = "the request is too long\n"}, true));
  } else {
    const Request request =
        ParseRequestLine(std::string_view(head).substr(0, head.find("\r\n")));
    Write(connection, Serialize(Respond(request), request.method != "HEAD"));
  }
  CloseGently(connection);
}

void HttpServer::Server::Serve() {
  pollfd fds[] = {{.fd = listener.socket.get(), .events = POLLIN, .revents = 0},
                  {.fd = stop.get(), .events = POLLIN, .revents = 0}};
  while (true) {
    if (poll(fds, 2, -1) < 0) continue;  // EINTR
    if (fds[1].revents != 0) return;
    const FileDescriptor connection(accept4(
        listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.valid()) {
      ServeConnection(connection.get());
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
               errno == ENOMEM) {
      // The connection stays pending: without a pause this would spin.
      WaitFor(-1, 0, Clock::now() + std::chrono::milliseconds(100));
    }
  }
}

HttpServer::HttpServer(std::unique_ptr<Server> server)
    : server_(std::move(server)) {}

HttpServer::~HttpServer() { eventfd_write(server_->stop.get(), 1); }

int HttpServer::port() const { return server_->listener.port; }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Create(
    const std::string& address, std::map<std::string, HttpHandler> handlers) {
  auto server = std::make_unique<Server>();
  PURSER_ASSIGN_OR_RETURN(server->listener, ListenTcp(address));
  server->stop = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!server->stop.valid())
    return absl::ErrnoToStatus(errno, "eventfd for the HTTP server");
  server->handlers = std::move(handlers);
  Server& running = *server;
  std::unique_ptr<HttpServer> result(new HttpServer(std::move(server)));
  try {
    for (int i = 0; i < kThreads; ++i)
      running.threads.emplace_back([&running] { running.Serve(); });
  } catch (const std::system_error& error) {
    return absl::ErrnoToStatus(
        error.code().value(),
        "cannot start a thread of the HTTP server; raise the limit of tasks "
        "(pids.max, RLIMIT_NPROC)");
  }
  return result;
}

}  // namespace purser::base
