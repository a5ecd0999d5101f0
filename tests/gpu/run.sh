#!/usr/bin/env bash
# Everything that needs a GPU, in one command: set-up, smoke test, captures with their checks, accesses, sampling, managed
# memory, PyTorch, embedding, paging plans, patterns of memory use, networks, roofs, overhead; then one table of all.
#
#   run.sh PACKAGE [--phases NAMES] [--budget SECONDS] [--work FOLDER]
#              [--scale FACTOR] [--repeats N]
#
#   PACKAGE     a relocatable .tar.gz of Sonde, or the prefix of an installation
#   --phases    comma-separated, of diagnose,smoke,record,access,sampling,managed,pytorch,embedding,patterns,
#               models,uvm,roofline,overhead (default: all). What a phase needs (unpacking, building) is done in any case
#   --budget    seconds for everything, default 570; each phase is stopped in time for the summary,
#               and the overhead measurement takes what the others leave
#   --work      folder for builds and captures, default: a fresh one, removed at the end
#   --scale     of the iterations of each overhead process, default 0.5: nine rounds take about 430 s
#   --repeats   rounds of the overhead measurement, default 9
#
# Results go to $OUT, or ./gpu-out when it is unset, in at most 8 flat files: summary.txt, log.txt,
# checks.txt, captures.tar, record-logs.tar.gz, overhead.json, overhead.txt, and results.tar.gz with
# the tables and JSON of the other phases. They grow while the run goes on, so a run that is killed
# leaves what it had. The card's settings are left alone.
#
# A failing smoke test ends the run at once, with diagnostics: nothing later could succeed.
# Exit code 0: every phase passed. 1: one failed or ran out of time. 2: wrong use.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
phases=diagnose,smoke,record,access,sampling,managed,pytorch,embedding,patterns,models,uvm,roofline,overhead
budget=570
work=
scale=0.5
repeats=9
package=

usage_error() { echo "run.sh: $*; see --help" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --phases | --budget | --work | --scale | --repeats)
      [ $# -ge 2 ] || usage_error "$1 needs a value"
      printf -v "${1#--}" '%s' "$2"
      shift 2
      ;;
    --help | -h) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    -*) usage_error "unknown option $1" ;;
    *) [ -z "$package" ] || usage_error "one package only"; package=$1; shift ;;
  esac
done
[ -n "$package" ] || usage_error "no package given"
[ -e "$package" ] || usage_error "$package does not exist"
[[ $budget =~ ^[0-9]+$ ]] || usage_error "--budget is not a number"
for name in ${phases//,/ }; do
  case $name in
    diagnose | smoke | record | access | sampling | managed | pytorch | embedding | patterns | models | uvm | roofline | overhead) ;;
    *) usage_error "--phases does not know $name" ;;
  esac
done

begin=$SECONDS
summary_seconds=15  # kept back for the summary
out=${OUT:-./gpu-out}
mkdir -p "$out"
out=$(cd "$out" && pwd)
export OUT=$out PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
keep_work=1
if [ -z "$work" ]; then
  work=$(mktemp -d "${TMPDIR:-/tmp}/sonde-gpu-XXXXXX")
  keep_work=0
fi
mkdir -p "$work"
work=$(cd "$work" && pwd)
build=$work/build
results=$work/results
mkdir -p "$build" "$results"
summary=$out/summary.txt
: >"$summary"
exec > >(tee "$out/log.txt") 2>&1
tee_process=$!

current=start
finished=0
active_child=
note() { echo "$*" | tee -a "$summary"; }
remaining() { echo $((budget - summary_seconds - (SECONDS - begin))); }

finish() {
  local code=$? verdict=1 waited
  trap - EXIT TERM INT
  [ -z "$active_child" ] || kill -TERM "$active_child" 2>/dev/null
  [ $finished -eq 1 ] || note "$current: FAILED, interrupted with exit code $code"
  grep -q FAILED "$summary" || verdict=0
  {
    [ -s "$out/checks.txt" ] &&
      grep -E '^[0-9]+ (equal|explained|different)|^FAILED|^[a-z]+: capture against|bytes' "$out/checks.txt"
    [ -s "$out/overhead.txt" ] && cat "$out/overhead.txt"
    cat "$results"/*.txt 2>/dev/null
  } >>"$summary"
  echo
  echo "==== summary after $((SECONDS - begin)) s of $budget s"
  cat "$summary"
  ls -l "$out"
  [ "$keep_work" -eq 1 ] || rm -rf "$work"
  # The copy of the output must be whole before this process ends.
  exec >/dev/null 2>&1
  for ((waited = 0; waited < 30; ++waited)); do
    kill -0 "$tee_process" 2>/dev/null || break
    sleep 0.1
  done
  exit $verdict
}
trap finish EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

wanted() { case ",$phases," in *",$1,"*) return 0 ;; *) return 1 ;; esac; }

# phase NAME LIMIT-SECONDS FUNCTION: runs it, stopped at the limit or when the budget ends.
phase() {
  local name=$1 limit=$2 function=$3 left code=0 since=$SECONDS
  left=$(remaining)
  [ "$limit" -le "$left" ] || limit=$left
  if [ "$limit" -lt 5 ]; then
    note "$name: FAILED, no time left"
    return 1
  fi
  current=$name
  echo
  echo "==== $name (at most $limit s, $((SECONDS - begin)) s since the start)"
  # `timeout` makes a process group of its own: stopping it stops what it started, nothing else.
  timeout --kill-after=5 "$limit" bash -c "set -uo pipefail; $function" &
  active_child=$!
  wait "$active_child" || code=$?
  active_child=
  tar -czf "$out/results.tar.gz" -C "$work" results
  if [ $code -eq 124 ] || [ $code -eq 137 ]; then
    note "$name: FAILED, stopped after $((SECONDS - since)) s"
  elif [ $code -ne 0 ]; then
    note "$name: FAILED, exit code $code after $((SECONDS - since)) s"
  else
    note "$name: passed in $((SECONDS - since)) s"
  fi
  return $code
}

find_sonde() {
  local root=$1
  find -L "$root" -path '*/bin/sonde' -type f -perm -u+x | head -n 1
}

set_up() {
  case $package in
    *.tar.gz | *.tgz) mkdir -p "$work/package" && tar -xzf "$package" -C "$work/package" || return 1 ;;
    *) ln -sfn "$(cd "$package" && pwd)" "$work/package" || return 1 ;;
  esac
  sonde=$(find_sonde "$work/package")
  if [ -z "$sonde" ]; then
    echo "no bin/sonde in $package"
    find -L "$work/package" -maxdepth 3 | head -n 40
    return 1
  fi
  echo "sonde: $sonde"
  "$sonde" --version || return 1
}

build_all() {
  local arch=${CUDA_ARCH:-sm_90} failed=0 name
  local -A jobs=()
  for name in programs/streams programs/fork_exec access/kernels access/bench; do
    nvcc -arch="$arch" -std=c++17 -O2 "$here/$name.cu" -o "$build/${name##*/}" -lcuda &
    jobs[${name##*/}]=$!
  done
  bash "$here/bare/build.sh" "$build/bare_cupti.so" &
  jobs[bare_cupti]=$!
  for name in "${!jobs[@]}"; do
    wait "${jobs[$name]}" || { echo "building $name failed"; failed=1; }
  done
  return $failed
}

run_diagnostics() {
  echo "-- machine"
  uname -srm
  sed -n 's/^PRETTY_NAME=//p' /etc/os-release
  nproc
  free -m | head -n 2
  nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used,clocks.sm --format=csv
  echo "-- tools"
  nvcc --version | tail -n 2
  g++ --version | head -n 1
  python3 - <<'PYTHON'
import importlib.metadata
import sys

print(sys.version.split()[0], sys.executable)
for name in ("torch", "triton", "nvidia-cuda-cupti"):
    try:
        print(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        print(name, "is not installed")
PYTHON
  echo "-- environment"
  env | grep -E '^(CUDA|NVIDIA|NVTX|LD_|SONDE|TRITON|PYTORCH|TORCH|PATH|OUT)' | sort
  echo "-- libcupti on this machine"
  find / -xdev -name 'libcupti.so*' -not -path '/proc/*' 2>/dev/null | head -n 20
  echo "-- the package"
  find -L "$work/package" -type f | sed "s#^$work/package/##" | sort | head -n 120
  find -L "$work/package" -type f \( -name '*.so' -o -name '*.so.*' -o -path '*/bin/*' \) |
    while read -r file; do
      ldd "$file" 2>/dev/null | grep 'not found' | sed "s#^#$(basename "$file"): #"
    done
  "$sonde" list
  return 0
}

# The smallest program under the recorder; when that fails, the bare client tells whether
# injection works on this machine at all.
run_smoke() {
  local folder=$work/smoke code=0
  rm -rf "$folder"
  mkdir -p "$folder"
  python3 "$here/selftest.py" >"$folder/selftest.txt" || {
    cat "$folder/selftest.txt"
    return 1
  }
  tail -n 1 "$folder/selftest.txt"
  "$build/streams" >"$folder/plain.out" || { echo "streams fails without a recorder"; return 1; }
  "$sonde" record -o "$folder/run" -- "$build/streams" >"$folder/streams.out" || code=$?
  echo "sonde record: exit code $code"
  ls -l "$folder/run"
  "$sonde" doctor "$folder/run" | head -n 60
  python3 "$here/compare.py" program --sonde "$sonde" --capture "$folder/run" \
    --reference "$folder/streams.out" --title "smoke: streams" | tee "$folder/compare.txt"
  local verdict=${PIPESTATUS[0]}
  if [ $code -eq 0 ] && grep -q '^kernels  *[1-9]' "$folder/compare.txt"; then
    # Kernels arrive; whether every count is right is for the record phase to say.
    [ "$verdict" -eq 0 ] || echo "smoke: kernels are recorded, but some counts differ"
    "$sonde" run -p workload -- "$build/streams" | head -n 70
    return 0
  fi
  echo "-- smoke test failed: what the bare CUPTI client sees"
  CUDA_INJECTION64_PATH=$build/bare_cupti.so BARE_CUPTI_OUTPUT=$folder/bare.json \
    "$build/streams" >"$folder/bare.out"
  cat "$folder/bare.json"
  echo "-- the files of the run"
  find "$folder/run" -type f -exec ls -l {} +
  head -c 2000 "$folder/run/run.json"
  run_diagnostics
  return 1
}

run_record() {
  bash "$here/record.sh" --sonde "$sonde" --build "$build" --work "$work/record"
}

# Accesses counted by hand, then what watching them costs. Both run, whatever the first says.
run_access() {
  local code=0
  printf 'ports:\n  cuda_access:\n    collect: objects\n' >"$work/objects.yaml"
  "$sonde" record -o "$work/access" -c "$work/objects.yaml" -- "$build/kernels" >"$work/kernels.json" || code=1
  python3 "$here/access/check.py" --sonde "$sonde" --capture "$work/access" --expected "$work/kernels.json" \
    --json "$results/access_check.json" | tee "$results/access_check.txt"
  [ "${PIPESTATUS[0]}" -eq 0 ] || code=1
  python3 "$here/access/measure.py" --sonde "$sonde" --bench "$build/bench" --out "$results" --seconds 90 || code=1
  return $code
}

run_sampling() {
  python3 "$here/sampling/check.py" --sonde "$sonde" --out "$results/sampling.json" | tee "$results/sampling.txt"
  return "${PIPESTATUS[0]}"
}

run_managed() {
  python3 "$here/managed/check.py" --sonde "$sonde" --out "$results/managed.json" | tee "$results/managed.txt"
  return "${PIPESTATUS[0]}"
}

run_pytorch() {
  python3 "$here/pytorch/check.py" --package "$(dirname "$(dirname "$sonde")")" --output "$results" |
    tee "$results/pytorch.txt"
  return "${PIPESTATUS[0]}"
}

run_embedding() {
  bash "$here/embedding/run.sh" "$(dirname "$(dirname "$sonde")")" "$results" | tee "$results/embedding.txt"
  return "${PIPESTATUS[0]}"
}

# Known inefficiencies against what the analyses find.
run_patterns() {
  nvcc -arch="${CUDA_ARCH:-sm_90}" -std=c++17 -O2 "$here"/patterns/*.cu -o "$build/patterns" -lcuda || return 1
  python3 "$here/patterns/check.py" --sonde "$sonde" --patterns "$build/patterns" --out "$results" --keep "$results/patterns"
}

# Working sets of networks, and a peak that a finding lowers.
run_models() {
  local code=0
  export SONDE_CACHE=$work/cache  # the adapter's native part is built once
  python3 "$here/models/working_set.py" --sonde "$sonde" --out "$results" --work "$work/models" --seconds 150 || code=1
  python3 "$here/models/apply_suggestion.py" --sonde "$sonde" --out "$results" || code=1
  return $code
}

# Plans for managed memory: calibrate, plan, apply, predict.
run_uvm() {
  python3 "$here/uvm/check.py" --sonde "$sonde" --out "$results/uvm.json" --budget 200 | tee "$results/uvm.txt"
  return "${PIPESTATUS[0]}"
}

run_roofline() {
  nvcc -arch="${CUDA_ARCH:-sm_90}" -std=c++17 -O3 "$here/roofline/ceilings.cu" -o "$build/ceilings" || return 1
  "$build/ceilings" | tee "$results/ceilings.yaml"
  return "${PIPESTATUS[0]}"
}

run_overhead() {
  python3 "$here/overhead/overhead.py" --output "$out" --sonde "$sonde" \
    --bare "$build/bare_cupti.so" --scale "$scale" --repeats "$repeats" \
    --budget "$overhead_budget"
}

current=set-up
echo "==== set-up"
PATH=$PATH:/usr/local/cuda/bin
if ! set_up; then
  note "set-up: FAILED"
  finished=1
  exit 1
fi
if build_all; then note "build: passed"; else note "build: FAILED"; fi
export here work build results out sonde scale repeats PATH
export -f run_diagnostics run_smoke run_record run_overhead
export -f run_access run_sampling run_managed run_pytorch run_embedding run_patterns run_models run_uvm run_roofline

wanted diagnose && phase diagnose 60 run_diagnostics
if wanted smoke && ! phase smoke 120 run_smoke; then
  note "the other phases were not tried"
  finished=1
  exit 1
fi
wanted record && phase record 300 run_record
wanted access && phase access 200 run_access
wanted sampling && phase sampling 90 run_sampling
wanted managed && phase managed 90 run_managed
wanted pytorch && phase pytorch 120 run_pytorch
wanted embedding && phase embedding 150 run_embedding
wanted patterns && phase patterns 120 run_patterns
wanted models && phase models 240 run_models
wanted uvm && phase uvm 240 run_uvm
wanted roofline && phase roofline 60 run_roofline
if wanted overhead; then
  left=$(remaining)
  # A child that hangs is stopped by the driver itself; the phase's limit is the last resort.
  export overhead_budget=$((left > 40 ? left - 20 : 20))
  phase overhead "$left" run_overhead
fi
finished=1
