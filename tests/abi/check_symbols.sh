#!/usr/bin/env bash
# usage: check_symbols.sh LIBRARY LIST
# The library's defined dynamic symbols are exactly the lines of LIST, sorted.
set -euo pipefail
export LC_ALL=C
if ! diff -u --label "$2" --label "$1" <(sort "$2") <(nm --dynamic --defined-only --format=posix "$1" | cut -d' ' -f1 | sort); then
  echo "The exported symbols of $1 differ from the list."
  exit 1
fi
echo "$(wc -l <"$2") symbols, as listed"
