// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.h"

#include <charconv>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
// 10^20 x 2^60 is still below 2^127.
constexpr size_t kMostDigits = 20;

struct Suffix {
  std::string_view text;
  int binary_exponent, decimal_exponent;
};
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
constexpr Suffix kSuffixes[] = {
    {"", 0, 0},    {"Ki", 10, 0}, {"Mi", 20, 0}, {"Gi", 30, 0},
    {"Ti", 40, 0}, {"Pi", 50, 0}, {"Ei", 60, 0}, {"n", 0, -9},
    {"u", 0, -6},  {"m", 0, -3},  {"k", 0, 3},   {"M", 0, 6},
    {"G", 0, 9},   {"T", 0, 12},  {"P", 0, 15},  {"E", 0, 18},
};

// digits x 10^decimal_exponent x 2^binary_exponent
struct Number {
  Wide digits = 0;
  int decimal_exponent = 0, binary_exponent = 0;
};

absl::Status Malformed(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format(
      "{} {}: write a number of bytes such as \"64Mi\", \"1.5Gi\" or "
      "\"67108864\"",
      QuoteForMessage(text), why));
}

// Takes "[0-9]*[.[0-9]*]" off `rest`; returns what is wrong with it, or "".
std::string_view TakeDecimal(std::string_view* rest, Number* number) {
  std::string digits;
  size_t length = 0;
  bool any = false, point = false;
  for (const char c : *rest) {
    if (c == '.' && !point) {
      point = true;
    } else if (absl::ascii_isdigit(static_cast<unsigned char>(c))) {
      any = true;
      if (c != '0' || !digits.empty()) digits.push_back(c);
      if (point) --number->decimal_exponent;
    } else {
      break;
    }
    ++length;
  }
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++number->decimal_exponent;
  }
  if (!any) return "is not a quantity";
  if (digits.size() > kMostDigits) return "has more than 20 digits";
  for (const char c : digits) number->digits = number->digits * 10 + (c - '0');
  rest->remove_prefix(length);
  return "";
}

// Applies a suffix or a decimal exponent; false if it is neither.
bool ApplySuffix(std::string_view rest, Number* number) {
  for (const Suffix& suffix : kSuffixes) {
    if (rest != suffix.text) continue;
    number->binary_exponent = suffix.binary_exponent;
    number->decimal_exponent += suffix.decimal_exponent;
    return true;
  }
  if (rest[0] != 'e' && rest[0] != 'E') return false;
  rest.remove_prefix(1);
  if (rest.starts_with('+')) {
    rest.remove_prefix(1);
    if (rest.starts_with('-')) return false;
  }
  int exponent = 0;
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), exponent);
  if (error != std::errc() || end != rest.data() + rest.size() ||
      exponent < -1000 || exponent > 1000)
    return false;
  number->decimal_exponent += exponent;
  return true;
}

// nullopt: above kMax. `whole`: whether nothing was rounded.
std::optional<uint64_t> RoundUp(Number number, bool* whole) {
  *whole = true;
  Wide value = number.digits << number.binary_exponent;
  for (int i = number.decimal_exponent; i > 0 && value != 0; --i) {
    if (value > kMax) return std::nullopt;
    value *= 10;
  }
  // Rounding up at each step comes to the same as rounding up once.
  for (int i = number.decimal_exponent; i < 0 && value != 0; ++i) {
    *whole &= value % 10 == 0;
    value = value / 10 + (value % 10 == 0 ? 0 : 1);
    if (value == 1 && !*whole) break;
  }
  if (value > kMax) return std::nullopt;
  return static_cast<uint64_t>(value);
}

}  // namespace

absl::StatusOr<uint64_t> ParseQuantity(std::string_view text) {
  std::string_view rest = text;
  if (rest.empty()) return Malformed(text, "is empty");
  if (rest[0] == '-') return Malformed(text, "is negative");
  if (rest[0] == '+') rest.remove_prefix(1);
  Number number;
  if (const std::string_view fault = TakeDecimal(&rest, &number);
      !fault.empty())
    return Malformed(text, fault);
  if (!ApplySuffix(rest, &number)) return Malformed(text, "is not a quantity");
  bool whole = false;
  const std::optional<uint64_t> value = RoundUp(number, &whole);
  if (!value.has_value()) return Malformed(text, "is more than 2^63-1 bytes");
  if (!whole && (rest == "m" || rest == "u" || rest == "n"))
    return Malformed(
        text, fmt::format("is {} fraction of a byte (\"{}\" divides; \"M\" and "
                          "\"Mi\" multiply)",
                          *value <= 1 ? "a" : "a number with a", rest));
  return *value;
}

std::optional<double> ParseFraction(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  if (percent) value /= 100;
  if (!(value > 0 && value <= 1)) return std::nullopt;
  return value;
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr std::string_view kUnits[] = {"B",   "KiB", "MiB", "GiB",
                                                "TiB", "PiB", "EiB"};
  size_t unit = 0;
  Wide tenths = 0;
  while (true) {
    const Wide half = (Wide{1} << (10 * unit)) / 2;
    tenths = (Wide{bytes} * 10 + half) >> (10 * unit);
    if (tenths < 10240 || unit + 1 == std::size(kUnits)) break;
    ++unit;
  }
  const auto whole = static_cast<uint64_t>(tenths / 10);
  const auto tenth = static_cast<uint64_t>(tenths % 10);
  if (tenth == 0) return fmt::format("{} {}", whole, kUnits[unit]);
  return fmt::format("{}.{} {}", whole, tenth, kUnits[unit]);
}

std::string FormatCount(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

}  // namespace purser::base
