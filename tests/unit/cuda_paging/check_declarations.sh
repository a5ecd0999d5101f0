#!/bin/sh
# Compiles declarations.cpp against the CUDA headers of this machine; exit code 77 (skipped) where there are none.
# Usage: check_declarations.sh COMPILER SOURCE_ROOT
set -eu
compiler=$1
root=$2

for folder in ${CUDA_HOME:+"$CUDA_HOME"} ${CUDA_PATH:+"$CUDA_PATH"} /usr/local/cuda /usr/local/cuda-*; do
  for include in "$folder/include" "$folder/extras/CUPTI/include"; do
    [ -f "$include/generated_cuda_meta.h" ] || continue
    echo "comparing with $include"
    exec "$compiler" -std=c++20 -Wall -Wextra -fsyntax-only -isystem "$include" -isystem "$folder/include" \
      -I "$root/ports/cuda/paging" -I "$root/include" "$root/tests/unit/cuda_paging/declarations.cpp"
  done
done
echo "skipped: no CUDA headers on this machine (looked in CUDA_HOME, CUDA_PATH and /usr/local/cuda*)"
exit 77
