#!/bin/sh
# Compiles declarations.cpp against the CUDA headers of this machine; exit code 77 (skipped) where there are none.
# Usage: check_declarations.sh COMPILER SOURCE_ROOT
set -eu
compiler=$1
root=$2

for folder in ${CUDA_HOME:+"$CUDA_HOME"} ${CUDA_PATH:+"$CUDA_PATH"} /usr/local/cuda /usr/local/cuda-*; do
  for include in "$folder/include" "$folder/extras/CUPTI/include"; do
    [ -f "$include/cupti_pcsampling.h" ] || continue
    version=$(sed -n 's/^#define CUPTI_API_VERSION \([0-9]*\).*/\1/p' "$include/cupti_version.h")
    if [ "${version:-0}" -lt 130000 ]; then
      echo "skipped: the comparison needs the headers of CUPTI 13.0 or later, $include has $version"
      exit 77
    fi
    echo "comparing with $include (CUPTI_API_VERSION $version)"
    exec "$compiler" -std=c++20 -Wall -Wextra -fsyntax-only -isystem "$include" -isystem "$folder/include" \
      -I "$root/ports/cuda/trace" -I "$root/ports/cuda/sampling" -I "$root/ports/cuda" -I "$root/include" \
      "$root/tests/unit/cuda_sampling/declarations.cpp"
  done
done
echo "skipped: no CUDA headers on this machine (looked in CUDA_HOME, CUDA_PATH and /usr/local/cuda*)"
exit 77
