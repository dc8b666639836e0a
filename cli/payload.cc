// SPDX-License-Identifier: Apache-2.0
#include "cli/payload.h"

#include <algorithm>
#include <cstring>

namespace purser::cli {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // splitmix64's increment
constexpr size_t kWord = sizeof(uint64_t);

uint64_t Mix(uint64_t x) {  // splitmix64's output function
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Payload::Payload(uint64_t seed, Lane lane, uint64_t index)
    : key_(Mix(Mix(seed + static_cast<uint64_t>(lane)) + kGolden * index)) {}

void Payload::Fill(std::span<std::byte> bytes) const {
  uint64_t state = key_;
  for (size_t at = 0; at < bytes.size(); at += kWord) {
    const uint64_t word = Mix(state += kGolden);
    memcpy(&bytes[at], &word, std::min(kWord, bytes.size() - at));
  }
}

uint64_t Payload::Mismatches(std::span<const std::byte> bytes) const {
  uint64_t state = key_, mismatches = 0;
  for (size_t at = 0; at < bytes.size(); at += kWord) {
    const size_t length = std::min(kWord, bytes.size() - at);
    const uint64_t word = Mix(state += kGolden);
    if (memcmp(&bytes[at], &word, length) == 0) continue;
    std::byte expected[kWord];
    memcpy(expected, &word, kWord);
    for (size_t i = 0; i < length; ++i)
      mismatches += bytes[at + i] != expected[i];
  }
  return mismatches;
}

void Checksum::Add(std::span<const std::byte> bytes) {
  for (size_t at = 0; at < bytes.size(); at += kWord) {
    uint64_t word = 0;
    memcpy(&word, &bytes[at], std::min(kWord, bytes.size() - at));
    value_ = Mix(value_ + kGolden + word);
  }
}

}  // namespace purser::cli
