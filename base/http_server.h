// SPDX-License-Identifier: Apache-2.0
//
// A small HTTP server (civetweb, two threads) for /metrics, /healthz and
// /readyz.
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
using HttpHandler = std::function<HttpResponse()>;  // called from server
                                                    // threads, for GET and HEAD

class HttpServer {
 public:
  // `address`: "0.0.0.0:9836", "[::]:9836", ":9836" (all), "127.0.0.1:0" (a
  // free port). AlreadyExists when the port is taken, InvalidArgument when the
  // address is malformed. Unknown paths answer 404 with a list of the known
  // ones.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Create(
      const std::string& address, std::map<std::string, HttpHandler> handlers);
  ~HttpServer();
  int port() const;

 private:
  struct Server;
  explicit HttpServer(std::unique_ptr<Server> server);
  std::unique_ptr<Server> server_;
};

// A handler for /metrics: the text exposition of everything the collectables
// return, collected at each scrape.
HttpHandler MetricsHandler(
    std::vector<std::shared_ptr<prometheus::Collectable>> collectables);

}  // namespace purser::base
