// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/queue_memory/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/fakes/paths.h"

namespace purser::queue_memory {
namespace {

using Fields = std::vector<std::string>;

std::string Directory() { return fakes::SourcePath("tests/testdata/golden"); }

// Calls `row(line number, fields by column)` for each row after the heading.
template <typename Row>
void ForEachRow(const std::string& name, Row row) {
  const std::string path = Directory() + "/" + name + ".csv";
  std::ifstream in(path);
  ASSERT_TRUE(in) << path;
  std::string text;
  Fields heading;
  for (int line = 1; std::getline(in, text); ++line) {
    Fields fields;
    std::istringstream split(text);
    for (std::string field; std::getline(split, field, ',');)
      fields.push_back(field);
    if (line == 1) {
      heading = fields;
      continue;
    }
    ASSERT_EQ(fields.size(), heading.size()) << path << ":" << line;
    std::map<std::string, std::string> by_column;
    for (size_t i = 0; i < fields.size(); ++i)
      by_column[heading[i]] = fields[i];
    row(line, by_column);
  }
}

uint64_t Number(const std::string& text) {
  return text.empty() ? 0 : std::stoull(text);
}

uint32_t Number32(const std::string& text) {
  return static_cast<uint32_t>(Number(text));
}

QueuePairType TypeOf(const std::string& name) {
  if (name == "UC") return QueuePairType::kUc;
  if (name == "UD") return QueuePairType::kUd;
  if (name == "XRC_SEND") return QueuePairType::kXrcSend;
  if (name == "RAW_PACKET") return QueuePairType::kRawPacket;
  if (name == "SRD") return QueuePairType::kSrd;
  return QueuePairType::kRc;
}

uint32_t SendOpsOf(const std::string& names) {
  if (names == "default") return kDefaultSendOps;
  if (names == "INLINE_WRITE(efadv)") return kSendOpsInlineWrite;
  return kSendOpsPlain |
         (names.find("ATOMIC") != std::string::npos ? uint32_t{kSendOpsAtomic}
                                                    : 0);
}

}  // namespace

std::vector<GoldenQueuePair> ReadQueuePairs(const std::string& provider) {
  std::vector<GoldenQueuePair> rows;
  ForEachRow(provider, [&](int line, std::map<std::string, std::string>& row) {
    GoldenQueuePair golden;
    golden.file = provider + ".csv";
    golden.line = line;
    golden.type = row["qp_type"];
    golden.send_ops = row["send_ops"];
    golden.charged = row["charged"];
    golden.request = {.type = TypeOf(golden.type),
                      .send_ops = SendOpsOf(golden.send_ops),
                      .max_send_wr = Number32(row["max_send_wr"]),
                      .max_send_sge = Number32(row["max_send_sge"]),
                      .max_inline_data = Number32(row["max_inline_data"]),
                      .max_recv_wr = Number32(row["max_recv_wr"]),
                      .max_recv_sge = Number32(row["max_recv_sge"])};
    golden.ok = row["ok"] == "1";
    golden.sq_bytes = Number(row["sq_bytes"]);
    golden.rq_bytes = Number(row["rq_bytes"]);
    golden.buffer_bytes = Number(row["buffer_bytes"]);
    golden.heap_bytes = Number(row["heap_bytes"]);
    golden.cap_send_wr = Number32(row["cap_send_wr"]);
    golden.cap_send_sge = Number32(row["cap_send_sge"]);
    golden.cap_inline_data = Number32(row["cap_inline"]);
    golden.cap_recv_wr = Number32(row["cap_recv_wr"]);
    golden.cap_recv_sge = Number32(row["cap_recv_sge"]);
    rows.push_back(golden);
  });
  return rows;
}

std::vector<GoldenCompletionQueue> ReadCompletionQueues() {
  std::vector<GoldenCompletionQueue> rows;
  ForEachRow("cq", [&](int line, std::map<std::string, std::string>& row) {
    rows.push_back({.line = line,
                    .provider = row["provider"],
                    .charged = row["charged"],
                    .cqe = Number32(row["cqe_requested"]),
                    .ok = !row["buffer_bytes"].empty(),
                    .cap_cqe = Number32(row["cqe_actual"]),
                    .cqe_size = Number32(row["cqe_size"]),
                    .buffer_bytes = Number(row["buffer_bytes"])});
  });
  return rows;
}

std::vector<std::string> QueuePairProviders() {
  std::vector<std::string> providers;
  for (const auto& entry : std::filesystem::directory_iterator(Directory()))
    if (entry.path().extension() == ".csv" && entry.path().stem() != "cq")
      providers.push_back(entry.path().stem());
  std::sort(providers.begin(), providers.end());
  return providers;
}

std::ostream& operator<<(std::ostream& out, const GoldenQueuePair& row) {
  const QueuePairRequest& r = row.request;
  return out << row.file << ":" << row.line << " " << row.type << " "
             << row.send_ops << " send " << r.max_send_wr << "/"
             << r.max_send_sge << "/" << r.max_inline_data << " recv "
             << r.max_recv_wr << "/" << r.max_recv_sge;
}

std::ostream& operator<<(std::ostream& out, const GoldenCompletionQueue& row) {
  return out << "cq.csv:" << row.line << " " << row.provider << " cqe "
             << row.cqe;
}

std::ostream& operator<<(std::ostream& out, const Charge& charge) {
  return out << "{container " << charge.container << ", node " << charge.node
             << "}";
}

}  // namespace purser::queue_memory
