// SPDX-License-Identifier: Apache-2.0
#include "queue_memory/queue_memory.h"

namespace purser::queue_memory {

const char* LimitName(Limit limit) {
  switch (limit) {
    case Limit::kNone:
      return "none";
    case Limit::kQueuePairType:
      return "queue pair type";
    case Limit::kMaxSendWr:
      return "max_send_wr";
    case Limit::kMaxRecvWr:
      return "max_recv_wr";
    case Limit::kMaxSendSge:
      return "max_send_sge";
    case Limit::kMaxRecvSge:
      return "max_recv_sge";
    case Limit::kMaxInlineData:
      return "max_inline_data";
    case Limit::kSendWqeSize:
      return "send WQE size";
    case Limit::kReceiveWqeSize:
      return "receive WQE size";
    case Limit::kSendRingSize:
      return "send ring size";
    case Limit::kReceiveRingSize:
      return "receive ring size";
    case Limit::kMaxCqe:
      return "max_cqe";
    case Limit::kMaxSrqWr:
      return "max_srq_wr";
    case Limit::kMaxSrqSge:
      return "max_srq_sge";
    case Limit::kSharedReceiveQueue:
      return "shared receive queue";
    case Limit::kLeastSendWr:
      return "least max_send_wr";
    case Limit::kLeastRecvWr:
      return "least max_recv_wr";
    case Limit::kLeastRecvSge:
      return "least max_recv_sge";
    case Limit::kLeastSrqWr:
      return "least srq max_wr";
  }
  return "none";
}

const char* QueuePairTypeName(QueuePairType type) {
  switch (type) {
    case QueuePairType::kRc:
      return "RC";
    case QueuePairType::kUc:
      return "UC";
    case QueuePairType::kUd:
      return "UD";
    case QueuePairType::kXrcSend:
      return "XRC_SEND";
    case QueuePairType::kRawPacket:
      return "RAW_PACKET";
    case QueuePairType::kDci:
      return "DCI";
    case QueuePairType::kSrd:
      return "SRD";
  }
  return "unknown";
}

}  // namespace purser::queue_memory
