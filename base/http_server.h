// SPDX-License-Identifier: Apache-2.0
//
// A small HTTP server for /metrics, /healthz and /readyz: GET and HEAD, one
// request per connection. libevent speaks HTTP; this says what is served, and
// runs the handlers on two threads. (Debian's civetweb, which prometheus-cpp's
// own exposer uses, is built without IPv6.)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace prometheus {
class Collectable;
}

namespace purser::base {

struct HttpResponse {
  int code = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};
// Called from two threads, for GET and HEAD alike.
using HttpHandler = std::function<HttpResponse()>;

// Serves from Create() until its destructor, which waits for handlers that run
// but for no client. A client from or to which nothing moves for 2 s is
// dropped; none holds up the others. A handler that throws answers 500.
// Overload: 503, or connections wait in the kernel's backlog.
class HttpServer {
 public:
  // `address`: "0.0.0.0:9836", "[::]:9836" (IPv4, too), ":9836" (all that there
  // are), "127.0.0.1:0" (a free port). AlreadyExists when the port is taken,
  // InvalidArgument when the address is malformed. Unknown paths answer 404
  // with a list of the known ones.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Create(
      const std::string& address, std::map<std::string, HttpHandler> handlers);
  ~HttpServer();
  int port() const;  // the one bound, when 0 was asked for

 private:
  struct Server;
  explicit HttpServer(std::unique_ptr<Server> server);
  std::unique_ptr<Server> server_;
};

// A handler for /metrics: the text exposition of everything the collectables
// return, collected at each scrape and sorted by name. Families of one name are
// merged; if their types differ, the scrape fails with 500 and says which.
HttpHandler MetricsHandler(
    std::vector<std::shared_ptr<prometheus::Collectable>> collectables);

}  // namespace purser::base
