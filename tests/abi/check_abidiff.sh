#!/usr/bin/env bash
# usage: check_abidiff.sh INCLUDE RELEASED LIBSONDE WITNESS    (INCLUDE: today's headers)
# Compares libsonde and the witness library with the descriptions kept of each release of the same interface number.
# abidiff's answer is a set of bits: 1 and 2 could not look, 4 a change, 8 an incompatible change. An appended member
# gives 4, and so does a reordered one, which compare_released.py refuses; so here 4 is shown and passes, 8 fails.
# Exit status 77 when there is no release to compare with.
set -euo pipefail
include=$1 released=$2 library=$3 witness=$4

abi_major() { sed -n 's/^#define SONDE_ABI_MAJOR //p' "$1/sonde/version.h"; }

compared=0
failed=0
for release in "$released"/*/; do
  [ -e "$release/witness.abi" ] || continue
  [ "$(abi_major "$release/include")" = "$(abi_major "$include")" ] || continue
  for pair in "libsonde $library" "witness $witness"; do
    read -r name today <<<"$pair"
    status=0
    abidiff --exported-interfaces-only "$release/$name.abi" "$today" || status=$?
    echo "$(basename "$release"): $name: abidiff says $status"
    if ((status & 11)); then failed=1; fi
    compared=$((compared + 1))
  done
done
if ((compared == 0)); then
  echo "no release to compare with"
  exit 77
fi
exit $failed
