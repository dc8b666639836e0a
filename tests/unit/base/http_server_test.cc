// SPDX-License-Identifier: Apache-2.0
#include "base/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace purser::base {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

FileDescriptor Connect(int port, int family = AF_INET) {
  FileDescriptor fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in ipv4 = {};
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = htons(static_cast<uint16_t>(port));
  ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 ipv6 = {};
  ipv6.sin6_family = AF_INET6;
  ipv6.sin6_port = htons(static_cast<uint16_t>(port));
  ipv6.sin6_addr = in6addr_loopback;
  const bool is_ipv4 = family == AF_INET;
  const auto* address = is_ipv4 ? reinterpret_cast<const sockaddr*>(&ipv4)
                                : reinterpret_cast<const sockaddr*>(&ipv6);
  if (connect(fd.get(), address, is_ipv4 ? sizeof(ipv4) : sizeof(ipv6)) != 0)
    return FileDescriptor();
  return fd;
}

void Send(const FileDescriptor& fd, const std::string& text) {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t count =
        send(fd.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;
    sent += static_cast<size_t>(count);
  }
}

// To the orderly end of the connection: a reset could lose data elsewhere.
std::string ReadAll(const FileDescriptor& fd) {
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t count = recv(fd.get(), buffer, sizeof(buffer), 0);
    EXPECT_GE(count, 0) << strerror(errno);
    if (count <= 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

std::string Exchange(int port, const std::string& request) {
  const FileDescriptor fd = Connect(port);
  EXPECT_TRUE(fd.valid());
  Send(fd, request);
  return ReadAll(fd);
}

std::unique_ptr<HttpServer> Serve(std::map<std::string, HttpHandler> handlers,
                                  const std::string& address = "127.0.0.1:0") {
  absl::StatusOr<std::unique_ptr<HttpServer>> server =
      HttpServer::Create(address, std::move(handlers));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

HttpHandler Body(std::string body) {
  return [body] { return HttpResponse{.body = body}; };
}

// A handler that does not return before `go`; `running` ends when two run.
struct Stuck {
  std::latch running{2}, go{1};
  std::atomic<int> calls = 0;
  HttpHandler handler() {
    return [this] {
      if (++calls <= 2) running.count_down();
      go.wait();
      return HttpResponse{.body = "x\n"};
    };
  }
};

TEST(HttpServerTest, AnswersGet) {
  const auto server = Serve({{"/healthz", Body("ok\n")}});
  const std::string response = Exchange(
      server->port(), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
  for (const char* header :
       {"Content-Type: text/plain; charset=utf-8", "Content-Length: 3",
        "Cache-Control: no-store", "X-Content-Type-Options: nosniff",
        "Connection: close"})
    EXPECT_THAT(response, HasSubstr(std::string("\r\n") + header + "\r\n"));
  EXPECT_THAT(response, EndsWith("\r\n\r\nok\n"));
}

TEST(HttpServerTest, HeadHasTheLengthButNoBody) {
  const auto server = Serve({{"/healthz", Body("ok\n")}});
  const std::string response =
      Exchange(server->port(), "HEAD /healthz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(response, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(response, EndsWith("\r\n\r\n"));
}

TEST(HttpServerTest, PassesCodeAndType) {
  const auto server =
      Serve({{"/readyz", [] {
                return HttpResponse{
                    .code = 503, .content_type = "a/b", .body = "starting\n"};
              }}});
  const std::string response =
      Exchange(server->port(), "GET /readyz HTTP/1.0\r\n\r\n");
  EXPECT_THAT(response,
              StartsWith("HTTP/1.0 503 Service Unavailable\r\nContent-Type: "
                         "a/b\r\nContent-Length: 9\r\n"));
  EXPECT_THAT(response, EndsWith("\r\n\r\nstarting\n"));
}

TEST(HttpServerTest, QueryAndFragmentDoNotCount) {
  const auto server = Serve({{"/metrics", Body("m\n")}});
  for (const char* target : {"/metrics?name=x&y=z", "/metrics#a", "/metrics?"})
    EXPECT_THAT(Exchange(server->port(),
                         std::string("GET ") + target + " HTTP/1.1\r\n\r\n"),
                EndsWith("\r\n\r\nm\n"));
}

TEST(HttpServerTest, UnknownPathsListTheKnownOnes) {
  const auto server = Serve({{"/metrics", Body("")}, {"/healthz", Body("")}});
  for (const char* target : {"/", "/metric", "/metrics/", "/../metrics", "*"}) {
    const std::string response = Exchange(
        server->port(), std::string("GET ") + target + " HTTP/1.1\r\n\r\n");
    EXPECT_THAT(response, StartsWith("HTTP/1.1 404 Not Found\r\n"));
    EXPECT_THAT(
        response,
        EndsWith("\r\n\r\nnot found; there are:\n/healthz\n/metrics\n"));
  }
}

TEST(HttpServerTest, OtherMethodsAreRefusedWithTheirBodies) {
  const auto server = Serve({{"/metrics", Body("m\n")}});
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    const std::string response =
        Exchange(server->port(), std::string(method) +
                                     " /metrics HTTP/1.1\r\nContent-Length: "
                                     "5000\r\n\r\n" +
                                     std::string(5000, 'x'));
    EXPECT_THAT(response, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
    EXPECT_THAT(response, HasSubstr("\r\nAllow: GET, HEAD\r\n"));
    EXPECT_THAT(response, Not(HasSubstr("m\n\n")));
  }
  EXPECT_THAT(Exchange(server->port(), "get /metrics HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 501 Not Implemented\r\n"));
}

TEST(HttpServerTest, MalformedRequestsAreAnswered400) {
  const auto server = Serve({{"/metrics", Body("m\n")}});
  const std::string kRequests[] = {
      "hello",
      "GET /metrics",
      "GET  HTTP/1.1extra",
      "GET /metrics HTTP/2",
      "GET /metrics FTP/1.1",
      "\x16\x03\x01\x02",  // TLS
      std::string("\0\0\0", 3),
      "",
  };
  for (const std::string& request : kRequests)
    EXPECT_THAT(Exchange(server->port(), request + "\r\n\r\n"),
                StartsWith("HTTP/1.1 400 Bad Request\r\n"))
        << request;
}

TEST(HttpServerTest, LongRequestsAreRefused) {
  const auto server = Serve({{"/metrics", Body("m\n")}});
  EXPECT_THAT(Exchange(server->port(), "GET /metrics HTTP/1.1\r\nX: " +
                                           std::string(7000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Exchange(server->port(), std::string(10000, 'x')),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(
      Exchange(server->port(), "GET /metrics HTTP/1.1\r\nX: x\r\nY: " +
                                   std::string(10000, 'x') + "\r\n\r\n"),
      StartsWith("HTTP/1.1 400 "));
  std::string many_headers = "GET /metrics HTTP/1.1\r\n";
  for (int i = 0; i < 1000; ++i) many_headers += "X: 345678\r\n";
  EXPECT_THAT(Exchange(server->port(), many_headers + "\r\n"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Exchange(server->port(),
                       "POST /metrics HTTP/1.1\r\nContent-Length: "
                       "100000\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
}

TEST(HttpServerTest, RequestMayComeInPieces) {
  const auto server = Serve({{"/metrics", Body("m\n")}});
  const FileDescriptor fd = Connect(server->port());
  for (const char* piece : {"G", "ET /met", "rics HTTP/1.1\r", "\n\r", "\n"})
    Send(fd, piece);
  EXPECT_THAT(ReadAll(fd), EndsWith("\r\n\r\nm\n"));
}

TEST(HttpServerTest, LargeBodiesArriveWhole) {
  const std::string large(8 << 20, 'x');
  const auto server = Serve({{"/metrics", Body(large)}});
  const std::string response =
      Exchange(server->port(), "GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(response.substr(0, 200),
              HasSubstr("Content-Length: 8388608\r\n"));
  EXPECT_TRUE(response.ends_with(large));
}

TEST(HttpServerTest, ExceptionsAreAnswered500AndTheServerLives) {
  const auto server = Serve(
      {{"/throws", []() -> HttpResponse { throw std::runtime_error("boom"); }},
       {"/worse", []() -> HttpResponse { throw 42; }},
       {"/healthz", Body("ok\n")}});
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(
        Exchange(server->port(), "GET /throws HTTP/1.1\r\n\r\n"),
        testing::AllOf(StartsWith("HTTP/1.1 500 Internal Server Error\r\n"),
                       EndsWith("\r\n\r\nfailed: boom\n")));
    EXPECT_THAT(Exchange(server->port(), "GET /worse HTTP/1.1\r\n\r\n"),
                EndsWith("\r\n\r\nfailed: unknown exception\n"));
  }
  EXPECT_THAT(Exchange(server->port(), "GET /healthz HTTP/1.1\r\n\r\n"),
              EndsWith("ok\n"));
}

TEST(HttpServerTest, CodesWithoutAReasonAreServed) {
  const auto server = Serve(
      {{"/x", [] { return HttpResponse{.code = 418, .body = "teapot\n"}; }}});
  EXPECT_THAT(Exchange(server->port(), "GET /x HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 418 "));
}

TEST(HttpServerTest, ServesTwoAtOnce) {
  std::latch both(2);
  const auto server = Serve({{"/x", [&] {
                                both.arrive_and_wait();
                                return HttpResponse{.body = "x\n"};
                              }}});
  std::string first, second;
  {
    std::jthread other(
        [&] { first = Exchange(server->port(), "GET /x HTTP/1.1\r\n\r\n"); });
    second = Exchange(server->port(), "GET /x HTTP/1.1\r\n\r\n");
  }
  EXPECT_THAT(first, EndsWith("x\n"));
  EXPECT_THAT(second, EndsWith("x\n"));
}

TEST(HttpServerTest, ManyClients) {
  const auto server = Serve({{"/x", Body("x\n")}});
  std::vector<std::jthread> clients;
  for (int i = 0; i < 8; ++i)
    clients.emplace_back([&] {
      for (int j = 0; j < 25; ++j)
        EXPECT_THAT(Exchange(server->port(), "GET /x HTTP/1.1\r\n\r\n"),
                    EndsWith("\r\n\r\nx\n"));
    });
}

TEST(HttpServerTest, SilentClientsDoNotHoldUpOthers) {
  const auto server = Serve({{"/x", Body("x\n")}});
  const FileDescriptor silent[] = {Connect(server->port()),
                                   Connect(server->port()),
                                   Connect(server->port())};
  Send(silent[1], "GET /x HT");
  const auto start = Clock::now();
  EXPECT_THAT(Exchange(server->port(), "GET /x HTTP/1.1\r\n\r\n"),
              EndsWith("\r\n\r\nx\n"));
  EXPECT_LT(Clock::now() - start, 1s);
}

TEST(HttpServerTest, TooManyConnectionsWaitUntilSilentOnesAreDropped) {
  const auto server = Serve({{"/x", Body("x\n")}});
  const auto start = Clock::now();
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 170; ++i) silent.push_back(Connect(server->port()));
  Send(silent[1], "GET /x HT");
  EXPECT_THAT(Exchange(server->port(), "GET /x HTTP/1.1\r\n\r\n"),
              EndsWith("\r\n\r\nx\n"));
  EXPECT_GT(Clock::now() - start, 1900ms);
  EXPECT_LT(Clock::now() - start, 5s);
  EXPECT_EQ(ReadAll(silent[1]), "");
}

TEST(HttpServerTest, TooManyWaitingRequestsAreAnswered503) {
  Stuck stuck;
  const auto server = Serve({{"/x", stuck.handler()}});
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 2 + 64; ++i) {
    clients.push_back(Connect(server->port()));
    Send(clients.back(), "GET /x HTTP/1.1\r\n\r\n");
    if (i == 1) stuck.running.wait();
  }
  EXPECT_THAT(Exchange(server->port(), "GET /x HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 503 "));
  stuck.go.count_down();
  for (const FileDescriptor& client : clients)
    EXPECT_THAT(ReadAll(client), EndsWith("\r\n\r\nx\n"));
}

TEST(HttpServerTest, StopWaitsForRunningHandlersAlone) {
  Stuck stuck;
  auto server = Serve({{"/x", stuck.handler()}});
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(Connect(server->port()));
    Send(clients.back(), "GET /x HTTP/1.1\r\n\r\n");
  }
  stuck.running.wait();
  std::jthread stop([&] { server.reset(); });
  stuck.go.count_down();
}

TEST(HttpServerTest, ClientsThatLeaveDoNotEndTheProcess) {
  const auto before = signal(SIGPIPE, SIG_DFL);
  Stuck stuck;
  const auto server =
      Serve({{"/x", stuck.handler()}, {"/healthz", Body("ok\n")}});
  {
    const FileDescriptor clients[] = {Connect(server->port()),
                                      Connect(server->port())};
    for (const FileDescriptor& client : clients)
      Send(client, "GET /x HTTP/1.1\r\n\r\n");
    stuck.running.wait();
    for (const FileDescriptor& client : clients) {
      // A reset after an orderly end is what makes the next write an EPIPE.
      shutdown(client.get(), SHUT_WR);
      const linger reset = {.l_onoff = 1, .l_linger = 0};
      setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    }
  }
  stuck.go.count_down();
  EXPECT_THAT(Exchange(server->port(), "GET /healthz HTTP/1.1\r\n\r\n"),
              EndsWith("ok\n"));
  signal(SIGPIPE, before);
}

TEST(HttpServerTest, DestructorDoesNotWaitForClients) {
  auto server = Serve({{"/x", Body(std::string(8 << 20, 'x'))}});
  const FileDescriptor silent = Connect(server->port());
  const FileDescriptor not_reading = Connect(server->port());
  Send(not_reading, "GET /x HTTP/1.1\r\n\r\n");
  char first = 0;
  ASSERT_EQ(recv(not_reading.get(), &first, 1, 0), 1);
  const int port = server->port();
  const auto start = Clock::now();
  server.reset();
  EXPECT_LT(Clock::now() - start, 1500ms);
  EXPECT_FALSE(Connect(port).valid());
}

TEST(HttpServerTest, RebindsAtOnce) {
  auto server = Serve({{"/x", Body("x\n")}});
  const std::string address = "127.0.0.1:" + std::to_string(server->port());
  Exchange(server->port(), "GET /x HTTP/1.1\r\n\r\n");
  server.reset();
  server = Serve({{"/x", Body("y\n")}}, address);
  EXPECT_THAT(Exchange(server->port(), "GET /x HTTP/1.1\r\n\r\n"),
              EndsWith("y\n"));
}

TEST(HttpServerTest, SurvivesRunningOutOfDescriptors) {
  const auto server = Serve({{"/x", Body("x\n")}});
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  testing::internal::CaptureStderr();
  const int next_free = fcntl(fd.get(), F_DUPFD, 0);
  close(next_free);
  rlimit none_left = before;
  none_left.rlim_cur = static_cast<rlim_t>(next_free);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(server->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                    sizeof(address)),
            0);
  Send(fd, "GET /x HTTP/1.1\r\n\r\n");
  timeval soon = {.tv_sec = 0, .tv_usec = 150000};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
  char byte = 0;
  EXPECT_EQ(recv(fd.get(), &byte, 1, 0), -1);  // not accepted, not refused
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  // libevent warns at each try when nobody pauses it.
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  timeval later = {.tv_sec = 5, .tv_usec = 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &later, sizeof(later));
  EXPECT_THAT(ReadAll(fd), EndsWith("\r\n\r\nx\n"));
}

TEST(HttpServerTest, AddressesThatStandForAll) {
  for (const char* address : {":0", "0.0.0.0:0", "[::]:0"}) {
    const auto server = Serve({{"/x", Body("x\n")}}, address);
    EXPECT_TRUE(Connect(server->port()).valid()) << address;
  }
  for (const char* address : {":0", "[::]:0", "[::1]:0"}) {
    const auto server = Serve({{"/x", Body("x\n")}}, address);
    EXPECT_TRUE(Connect(server->port(), AF_INET6).valid()) << address;
  }
}

TEST(HttpServerTest, LoopbackIsLoopbackAlone) {
  const auto server = Serve({{"/x", Body("x\n")}}, "127.0.0.1:0");
  EXPECT_FALSE(Connect(server->port(), AF_INET6).valid());
}

TEST(HttpServerTest, PortThatIsTaken) {
  const auto server = Serve({}, "127.0.0.1:0");
  const std::string address = "127.0.0.1:" + std::to_string(server->port());
  const absl::Status status = HttpServer::Create(address, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("cannot listen on " + address +
                         ": the port is taken by another process"));
}

TEST(HttpServerTest, AddressOfAnotherHost) {
  const absl::Status status =
      HttpServer::Create("192.0.2.1:0", {}).status();  // TEST-NET-1
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot listen on 192.0.2.1:0: bind"));
}

TEST(HttpServerTest, MalformedAddresses) {
  for (const char* address :
       {"", "9836", "localhost", "localhost:9836", "127.0.0.1",
        "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:65536", "127.0.0.1:http",
        "127.0.0.1: 80", "127.0.0.256:80", "::1:80", "[::1]", "[::1:80",
        "[127.0.0.1]:80", "[::g]:80", "[]:80", "a b:80", "127.0.0.1:80/"}) {
    const absl::Status status = HttpServer::Create(address, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(status.message()),
                StartsWith("address \"" + std::string(address) +
                           "\" is malformed: write IP:PORT"));
  }
}

}  // namespace
}  // namespace purser::base
