#!/usr/bin/env bash
# Builds the embedding program against an unpacked package and runs it: embedding/run.sh PREFIX [OUTPUT_FOLDER]
#
#   SESSIONS (1000), LAUNCHES (10000000)   how many
#   LIMIT (60)                             seconds for each part
#
# Writes OUTPUT/embedding-sessions.json and embedding-launches.json. Exit code 0 when both parts are good.
set -uo pipefail

prefix=$(cd "${1:?usage: run.sh PREFIX [OUTPUT_FOLDER]}" && pwd)
output=${2:-.}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$PATH:/usr/local/cuda/bin
mkdir -p "$output"
program=$output/embedding
nvcc -arch="${CUDA_ARCH:-sm_90}" -std=c++20 -O2 -I "$prefix/include" "$here/embedding.cu" -o "$program" \
  -L "$prefix/lib" -lsonde -Xlinker -rpath="$prefix/lib" || exit 2

code=0
for part in sessions:"${SESSIONS:-1000}" launches:"${LAUNCHES:-10000000}"; do
  name=${part%%:*}
  timeout --kill-after=5 "${LIMIT:-60}" "$program" "$name" "${part##*:}" | tee "$output/embedding-$name.json"
  status=${PIPESTATUS[0]}
  [ "$status" -eq 0 ] || { echo "embedding $name: FAILED, exit code $status"; code=1; }
done
rm -f "$program"
exit $code
