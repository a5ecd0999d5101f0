#!/bin/bash
# From a fresh clone to the report of a recorded PyTorch training run; needs no GPU.
#
#   samples/quickstart.sh
#
# On Debian 12, as root, it installs what tests/packages.txt names and the machine lacks; elsewhere it says what to
# install. It builds into build/release and writes build/quickstart/report.json.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

say() { printf '\n== %s\n' "$*"; }

say "Packages"
missing=()
while read -r package _; do
  [[ -z $package || $package == \#* ]] && continue
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done < tests/packages.txt
if ((${#missing[@]} == 0)); then
  echo "all there"
elif [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
  echo "installing: ${missing[*]}"
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
else
  echo "These packages are missing; install them and run this again:" >&2
  echo "  ${missing[*]}" >&2
  exit 1
fi

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
