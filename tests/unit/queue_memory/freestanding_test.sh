#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fails if a static library needs anything beside itself and the C library's
# memory functions: no allocation, no exceptions, no RTTI, no C++ library.
# Usage: freestanding_test.sh NM LIBRARY [MORE], a pattern of what else of libc it may need
set -euo pipefail
nm=$1 library=$2 more=${3:-memset}

defined=$("$nm" --defined-only --format=posix "$library" | awk 'NF > 1 {print $1}' | sort -u)
undefined=$("$nm" --undefined-only --format=posix "$library" | awk 'NF > 1 {print $1}' | sort -u)
[ -n "$defined" ] || { echo "$library defines nothing: is it the right file?" >&2; exit 1; }

# The sanitizers' own calls do not count.
foreign=$(comm -13 <(echo "$defined") <(echo "$undefined") |
  grep -Ev '^(mem(cpy|move|set|cmp)|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__(a|t|ub)san_.*|__sanitizer_.*|'"$more"')$' || true)
if [ -n "$foreign" ]; then
  echo "$library is not freestanding; it needs:" >&2
  echo "$foreign" >&2
  exit 1
fi
