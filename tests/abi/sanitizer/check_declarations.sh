#!/bin/sh
# Compiles declarations.cpp against the Compute Sanitizer's headers of this machine; exit code 77 (skipped) where there
# are none. SONDE_SANITIZER_INCLUDE names their folder, else CUDA's folders are searched.
# Usage: check_declarations.sh COMPILER SOURCE_ROOT
set -eu
compiler=$1
root=$2

cuda=
sanitizer=
for folder in ${CUDA_HOME:+"$CUDA_HOME"} ${CUDA_PATH:+"$CUDA_PATH"} /usr/local/cuda /usr/local/cuda-*; do
  if [ -z "$cuda" ] && [ -f "$folder/include/cuda.h" ]; then cuda=$folder/include; fi
  if [ -z "$sanitizer" ] && [ -f "$folder/compute-sanitizer/include/sanitizer.h" ]; then
    sanitizer=$folder/compute-sanitizer/include
  fi
done
if [ -n "${SONDE_SANITIZER_INCLUDE:-}" ]; then sanitizer=$SONDE_SANITIZER_INCLUDE; fi
if [ -z "$cuda" ] || ! [ -f "$sanitizer/sanitizer.h" ]; then
  echo "skipped: no headers of CUDA and the Compute Sanitizer (looked in SONDE_SANITIZER_INCLUDE, CUDA_HOME, CUDA_PATH" \
    "and /usr/local/cuda*)"
  exit 77
fi
version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$cuda/cuda.h")
if [ "${version:-0}" -lt 13000 ]; then
  echo "skipped: the comparison needs the headers of CUDA 13.0 or later, $cuda has $version"
  exit 77
fi
echo "comparing with $sanitizer and $cuda (CUDA_VERSION $version)"
exec "$compiler" -std=c++20 -Wall -Wextra -fsyntax-only -isystem "$sanitizer" -isystem "$cuda" \
  -I "$root/ports/cuda/access" -I "$root/include" "$root/tests/abi/sanitizer/declarations.cpp"
