#!/usr/bin/env bash
# The emit benchmark beside LTTng-UST in the same process.
#
#   tests/bench/emit.sh [BENCHMARK] [RUNS] [EVENTS]
#
# Needs lttng-tools and liblttng-ust-dev at build time for the peer; without them it measures Sonde alone. The peer runs
# in snapshot (overwrite) mode, which is its cheapest, with a buffer of 8 MiB a processor.
set -euo pipefail
cd "$(dirname "$0")/../.."
bench=${1:-build/release/bin/bench/emit}
runs=${2:-11}
events=${3:-10000000}

if ! command -v lttng > /dev/null; then
  exec "$bench" "$runs" "$events"
fi
home=$(mktemp -d)
export HOME=$home LTTNG_HOME=$home
lttng-sessiond --daemonize --no-kernel --pidfile "$home/sessiond.pid" > "$home/sessiond.log" 2>&1
stop() {
  lttng destroy sonde_bench > /dev/null 2>&1 || true
  [[ -s $home/sessiond.pid ]] && kill "$(cat "$home/sessiond.pid")" 2> /dev/null || true
  sleep 1
  rm -rf "$home"
}
trap stop EXIT
lttng create sonde_bench --snapshot > /dev/null
lttng enable-channel --userspace --overwrite --subbuf-size=2M --num-subbuf=4 channel > /dev/null
lttng enable-event --userspace --channel channel 'sonde_bench:*' > /dev/null
lttng start > /dev/null
SONDE_BENCH_LTTNG="LTTng-UST, snapshot mode, same payload" "$bench" "$runs" "$events"
