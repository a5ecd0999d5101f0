#!/usr/bin/env bash
# What is too slow for every submission: all tests with 10^5 property cases, each fuzzer for SONDE_FUZZ_SECONDS (60),
# clang-tidy over every source. Exit status 0 when all three are clean; each is run even when an earlier one is not.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${SONDE_JOBS:-$(nproc)}
seconds=${SONDE_FUZZ_SECONDS:-60}
failed=()

bash tests/install_packages.sh tests/packages.txt tests/packages_torch.txt tests/packages_long.txt

SONDE_CASES=${SONDE_CASES:-100000} bash tests/run.sh || failed+=(tests)

echo "== fuzzers, $seconds s each"
cmake --preset fuzz --log-level=WARNING
cmake --build --preset fuzz -j "$jobs"
mkdir -p build/fuzz/findings
for fuzzer in build/fuzz/bin/fuzz/*; do
  [ -x "$fuzzer" ] || continue
  name=$(basename "$fuzzer")
  mkdir -p "build/fuzz/corpus/$name"
  corpora=("build/fuzz/corpus/$name")
  [ -d "tests/fuzz/$name.corpus" ] && corpora+=("tests/fuzz/$name.corpus")
  echo "-- $name"
  "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/findings/$name-" "${corpora[@]}" >"build/fuzz/$name.log" 2>&1 ||
    failed+=("fuzzer $name, see build/fuzz/$name.log")
  grep -E '^stat::number_of_executed_units' "build/fuzz/$name.log" || true
done

echo "== clang-tidy"
python3 - <<'PYTHON' | xargs -0 -P "$jobs" -n 1 clang-tidy-14 --quiet -p build/dev || failed+=(clang-tidy)
import json
import os
root = os.getcwd() + os.sep
files = {entry['file'] for entry in json.load(open('build/dev/compile_commands.json'))}
own = sorted(f for f in files if f.startswith(root) and not f.startswith(root + 'build'))
print('\0'.join(own), end='')
PYTHON

if ((${#failed[@]})); then
  printf 'FAILED: %s\n' "${failed[@]}"
  exit 1
fi
echo "long run: all clean"
