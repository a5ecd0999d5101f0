#!/usr/bin/env bash
# The layout benchmark: C, C++ and a textbook implementation interleaved in one process, then Lua.
#
#   tests/bench/layout.sh [BUILD] [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
rounds=${2:-21}
"$build/bin/bench/layout" "$rounds"
echo
echo "Lua 5.4, median of $rounds rounds of CPU time, ns for one operation"
LUA_CPATH="$build/lib/sonde/lua/5.4/?.so" lua5.4 tests/bench/layout.lua "$rounds"
