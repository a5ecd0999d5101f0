#!/bin/bash
# From a fresh clone to the report of a recorded PyTorch training run; needs no GPU.
#
#   samples/quickstart.sh
#
# On Debian 12 it installs what tests/packages.txt names and the machine lacks (as root, or with sudo). It builds into
# build/release and writes build/quickstart/report.json.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

say() { printf '\n== %s\n' "$*"; }

say "Packages"
tests/install_packages.sh

say "Build (build/release)"
cmake --preset release
cmake --build --preset release --parallel "$(nproc)"

capture=$root/tests/data/pytorch_train
if [[ ! -e $capture ]]; then
  echo "$capture is missing: the recorded run is part of the repository" >&2
  exit 1
fi
sonde=$root/build/release/bin/sonde
output=$root/build/quickstart
mkdir -p "$output"

say "Report of $capture"
"$sonde" replay "$capture" -p workload
"$sonde" replay "$capture" -p workload --format json -o "$output/report.json"
say "The same as JSON: $output/report.json"
