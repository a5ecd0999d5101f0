#!/usr/bin/env bash
# usage: check_format.sh ROOT
# Every C, C++ and CUDA source of the tree is as clang-format 14 writes it. `check_format.sh ROOT --fix` rewrites them.
set -euo pipefail
cd "$1"
mapfile -d '' files < <(find include sdk ports plugins bindings samples tests \
  -path tests/abi/released -prune -o \
  \( -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' \) -type f -print0)
if [ "${#files[@]}" -eq 0 ]; then
  echo "no sources below $1"
  exit 1
fi
if [ "${2:-}" = --fix ]; then
  exec clang-format-14 -i "${files[@]}"
fi
unformatted=$(printf '%s\0' "${files[@]}" |
  xargs -0 -P "$(nproc)" -n 16 sh -c 'for f; do clang-format-14 "$f" | cmp -s - "$f" || echo "$f"; done' sh)
if [ -n "$unformatted" ]; then
  echo "These files are not formatted; $0 . --fix writes them:"
  sort <<<"$unformatted"
  exit 1
fi
echo "${#files[@]} files are formatted"
