// SPDX-License-Identifier: Apache-2.0
//
// The two macros of this code base.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function when `expr` is a status that is not OK.
#define PURSER_RETURN_IF_ERROR(expr)                                \
  do {                                                              \
    if (absl::Status purser_status = (expr); !purser_status.ok()) { \
      return purser_status;                                         \
    }                                                               \
  } while (false)

// Assigns the value of a StatusOr to `lhs` (a declaration or a variable), or
// returns its status.
#define PURSER_ASSIGN_OR_RETURN(lhs, expr)                                  \
  PURSER_ASSIGN_OR_RETURN_1(PURSER_CONCAT(purser_statusor_, __LINE__), lhs, \
                            expr)
#define PURSER_ASSIGN_OR_RETURN_1(name, lhs, expr) \
  auto name = (expr);                              \
  if (!name.ok()) {                                \
    return std::move(name).status();               \
  }                                                \
  lhs = std::move(name).value()
#define PURSER_CONCAT(a, b) PURSER_CONCAT_1(a, b)
#define PURSER_CONCAT_1(a, b) a##b
