#!/usr/bin/env bash
# The whole test run on a machine without an accelerator: installs what is missing on Debian 12, builds the tree and the
# sanitized unit tests of core, store and layout, then runs everything under one ctest. Ends with ctest's summary;
# the exit status is ctest's.
#   SONDE_CASES   cases of each property test (default 2000)
#   SONDE_JOBS    parallel compilers and tests (default: all processors)
set -euo pipefail
cd "$(dirname "$0")/.."

export SONDE_CASES=${SONDE_CASES:-2000}
jobs=${SONDE_JOBS:-$(nproc)}
started=$SECONDS
stage() { echo "== $* (after $((SECONDS - started)) s)"; }

stage "packages"
bash tests/install_packages.sh tests/packages.txt tests/packages_torch.txt

for sanitizer in asan tsan; do
  stage "building $sanitizer"
  cmake --preset "$sanitizer" --log-level=WARNING
  cmake --build --preset "$sanitizer" -j "$jobs"
done
stage "building dev"
cmake --preset dev --log-level=WARNING \
  -DSONDE_ASAN_BUILD_DIR="$PWD/build/asan" -DSONDE_TSAN_BUILD_DIR="$PWD/build/tsan"
cmake --build --preset dev -j "$jobs"

stage "tests"
exec ctest --preset dev -j "$jobs"
