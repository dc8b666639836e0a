// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "base/file_descriptor.h"

namespace purser::integration {

// The whole response of a server on this machine: status line, headers, body.
inline std::string HttpGet(int port, const std::string& path) {
  const base::FileDescriptor connection(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0)
    return "cannot connect";
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  if (send(connection.get(), request.data(), request.size(), 0) < 0)
    return "cannot send";
  std::string response;
  char buffer[4096];
  ssize_t length = 0;
  while ((length = recv(connection.get(), buffer, sizeof(buffer), 0)) > 0)
    response.append(buffer, static_cast<size_t>(length));
  return response;
}

}  // namespace purser::integration
