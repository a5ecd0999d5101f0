#!/usr/bin/env bash
# Records the test programs of this folder on a GPU and checks the captures' counts.
#
#   record.sh [--sonde COMMAND] [--build FOLDER] [--work FOLDER] [--only NAMES] [--steps N]
#
#   --sonde   the command, default: sonde in PATH
#   --build   folder with the compiled programs; they are built there when absent
#   --work    folder for captures and logs, default: a fresh one, removed at the end
#   --only    comma-separated, of streams,fork,train,graph,triton,kernels,run
#             (default: all)
#   --steps   training steps of each model, default 12
#
# Results go to $OUT, or ./gpu-out when it is unset: captures.tar (one run directory for each
# program, with how it was made), checks.txt (tables: capture against torch.profiler or against
# the program's own counts), record-logs.tar.gz. Files are few and flat on purpose.
#
# Exit code 0: every program ran, every check is equal or explained, every capture is at most 3 MB
# and all together at most 10 MB. 1: something of that does not hold. 2: wrong use.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=$here/programs
sonde=sonde
build=
work=
only=streams,fork,train,graph,triton,kernels,run
steps=12
limit_each=$((3 * 1000 * 1000))
limit_all=$((10 * 1000 * 1000))

while [ $# -gt 0 ]; do
  case $1 in
    --sonde | --build | --work | --only | --steps)
      [ $# -ge 2 ] || { echo "record.sh: $1 needs a value" >&2; exit 2; }
      printf -v "${1#--}" '%s' "$2"
      shift 2
      ;;
    --help | -h) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "record.sh: unknown option $1; see --help" >&2; exit 2 ;;
  esac
done
for name in ${only//,/ }; do
  case $name in
    streams | fork | train | graph | triton | kernels | run) ;;
    *) echo "record.sh: --only does not know $name; see --help" >&2; exit 2 ;;
  esac
done
command -v "$sonde" >/dev/null || { echo "record.sh: no command $sonde" >&2; exit 2; }

out=${OUT:-./gpu-out}
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [ -z "$work" ]; then
  work=$(mktemp -d "${TMPDIR:-/tmp}/sonde-record-XXXXXX")
  trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work/captures" "$work/logs"
work=$(cd "$work" && pwd)
build=${build:-$work/build}
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
checks=$out/checks.txt
: >"$checks"
failures=()

fail() { echo "FAILED: $*" | tee -a "$checks"; failures+=("$*"); }
wanted() { case ",$only," in *",$1,"*) return 0 ;; *) return 1 ;; esac; }

# record NAME CONFIGURATION COMMAND...: the capture goes to captures/NAME, the program's output to
# logs/NAME.out
record() {
  local name=$1 configuration=$here/configurations/$2.yaml code=0
  shift 2
  echo "== record $name ($(basename "$configuration")): $*"
  rm -rf "$work/captures/$name"
  "$sonde" record -o "$work/captures/$name" -c "$configuration" -- "$@" \
    >"$work/logs/$name.out" 2>"$work/logs/$name.err" || code=$?
  if [ $code -ne 0 ]; then
    fail "$name: exit code $code"
    tail -n 15 "$work/logs/$name.err"
    # Without the recorder: tells whose fault it is.
    code=0
    "$@" >"$work/logs/$name.plain.out" 2>&1 || code=$?
    echo "the same command without a recorder: exit code $code"
    return 1
  fi
  tail -n 3 "$work/logs/$name.err"
  made_note "$name" "$configuration" "$@"
}

# Of an installed Python package, read without importing it.
package_version() {
  python3 -c 'import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))' \
    "$1" 2>/dev/null || echo unknown
}

# How the capture was made, kept beside it. No paths of this machine.
made_note() {
  local name=$1 configuration=$2 words
  shift 2
  words=$(printf '%s ' "$@" | sed -e "s#$programs/##g" -e "s#$build/##g" -e 's/ $//')
  {
    echo "command: sonde record -c $(basename "$configuration") -- $words"
    sed -e '/^#/d' -e "s/^/$(basename "$configuration"): /" "$configuration"
    echo "date: $(date -u +%Y-%m-%d)"
    echo "gpu: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)"
    echo "cuda: $(nvcc --version 2>/dev/null | sed -n 's/.*release //p')"
    echo "python: $(python3 -c 'import sys; print(sys.version.split()[0])' 2>/dev/null)"
    case $name in
      train | graph | triton)
        echo "torch: $(package_version torch)"
        echo "triton: $(package_version triton)"
        ;;
    esac
    echo "sonde: $("$sonde" --version 2>/dev/null | head -n 1)"
  } >"$work/captures/$name.txt"
}

# read_back NAME: report and doctor of the capture; the report is what compare.py checks too.
read_back() {
  local name=$1
  "$sonde" replay "$work/captures/$name" -p workload --format json \
    >"$work/logs/$name.report.json" 2>"$work/logs/$name.replay.err" || {
    fail "$name: replay"
    tail -n 5 "$work/logs/$name.replay.err"
  }
  "$sonde" doctor "$work/captures/$name" >"$work/logs/$name.doctor.txt" 2>&1 ||
    echo "note: $name: doctor ended with exit code $?"
  head -n 30 "$work/logs/$name.doctor.txt"
}

# check NAME MODE REFERENCE
check() {
  local name=$1 mode=$2 reference=$3 report=()
  [ -s "$work/logs/$name.report.json" ] && report=(--report "$work/logs/$name.report.json")
  python3 "$here/compare.py" "$mode" --sonde "$sonde" --capture "$work/captures/$name" \
    --reference "$reference" "${report[@]}" --title "$name: capture against $(basename "$reference")" \
    --json "$work/logs/$name.$mode.rows.json" >"$work/logs/$name.$mode.check" 2>&1 ||
    fail "$name: counts ($mode)"
  tee -a "$checks" <"$work/logs/$name.$mode.check"
}

# against_profiler NAME COMMAND...: the same command under torch.profiler, then the comparison
against_profiler() {
  local name=$1
  shift
  "$@" --check-profile "$work/logs/$name.profile.json" \
    >"$work/logs/$name.profile.out" 2>"$work/logs/$name.profile.err" || {
    fail "$name: torch.profiler run"
    tail -n 15 "$work/logs/$name.profile.err"
    return 1
  }
  check "$name" torch "$work/logs/$name.profile.json"
}

pack() {
  local file
  # run.yaml only says where this machine wrote the capture; the options are in the .txt beside it.
  tar -C "$work" --exclude=run.yaml -cf "$out/captures.tar" captures
  # Reports and counts are small; a program's raw output is not expected to be large either.
  for file in "$work"/logs/*; do
    [ "$(stat -c %s "$file")" -le 8000000 ] || truncate -s 8000000 "$file"
  done
  tar -C "$work" -czf "$out/record-logs.tar.gz" logs
}

build_program() {
  local name=$1
  [ -x "$build/$name" ] && return 0
  mkdir -p "$build"
  nvcc -arch="${CUDA_ARCH:-sm_90}" -std=c++17 -O2 "$programs/$name.cu" -o "$build/$name" || {
    fail "$name: nvcc"
    return 1
  }
}

if wanted streams && build_program streams && record streams everything "$build/streams"; then
  read_back streams
  check streams program "$work/logs/streams.out"
  pack
fi
if wanted fork && build_program fork_exec && record fork calls "$build/fork_exec"; then
  read_back fork
  check fork images "$work/logs/fork.out"
  pack
fi
if wanted train; then
  if record train calls python3 "$programs/train.py" --steps "$steps" --nvtx; then
    read_back train
    against_profiler train python3 "$programs/train.py" --steps "$steps"
    pack
  fi
fi
if wanted graph; then
  if record graph calls python3 "$programs/train.py" --steps "$steps" --graph --nvtx; then
    read_back graph
    against_profiler graph python3 "$programs/train.py" --steps "$steps" --graph
    pack
  fi
fi
if wanted triton && record triton calls python3 "$programs/triton_kernels.py"; then
  read_back triton
  check triton program "$work/logs/triton.out"
  against_profiler triton python3 "$programs/triton_kernels.py"
  pack
fi

# Bytes on disk for a kernel record: a capture of device records alone, divided. Its few copies,
# sets, names and schemas are in the numerator too, so this is an upper bound.
if wanted kernels && record kernels kernels python3 "$programs/train.py" --steps "$steps"; then
  python3 - "$here" "$sonde" "$work/captures/kernels" <<'PYTHON' | tee -a "$checks"
import sys

sys.path.insert(0, sys.argv[1])
import capture_counts
import compare

files = compare.capture_files(sys.argv[3])
kernels = sum(
    sum(capture_counts.counts_of_capture(sys.argv[2], path)["kernels"].values()) for path in files
)
size = sum(path.stat().st_size for path in files)
print(f"kernels: {size} bytes on disk for {kernels} kernel records and what goes with them")
if kernels:
    print(f"kernels: {size / kernels:.1f} bytes a kernel (limit 16)")
sys.exit(0 if kernels and size <= 16 * kernels else 1)
PYTHON
  [ "${PIPESTATUS[0]}" -eq 0 ] || fail "kernels: bytes a kernel record"
fi

# The report straight from a live run, as a newcomer would ask for it.
if wanted run; then
  echo "== sonde run -p workload -- python3 train.py"
  "$sonde" run -p workload -- python3 "$programs/train.py" --steps "$steps" \
    >"$work/logs/run.out" 2>"$work/logs/run.err" || {
    fail "run: exit code $?"
    tail -n 15 "$work/logs/run.err"
  }
  head -n 80 "$work/logs/run.out"
fi

print_sizes() {
  local total=0 folder name bytes
  echo "sizes on disk (limit $limit_each bytes each, $limit_all together)"
  for folder in "$work"/captures/*/; do
    [ -d "$folder" ] || continue
    name=$(basename "$folder")
    bytes=$(find "$folder" -type f -printf '%s\n' | awk '{sum += $1} END {print sum + 0}')
    total=$((total + bytes))
    printf '  %-8s %9d bytes in %d files\n' "$name" "$bytes" "$(find "$folder" -type f | wc -l)"
    [ "$bytes" -le "$limit_each" ] || too_large+=("$name: $bytes bytes are more than $limit_each")
  done
  printf '  %-8s %9d bytes\n' all "$total"
  [ "$total" -le "$limit_all" ] || too_large+=("all: $total bytes are more than $limit_all")
}

too_large=()
print_sizes >"$work/logs/sizes.txt"
tee -a "$checks" <"$work/logs/sizes.txt"
for text in "${too_large[@]}"; do fail "$text"; done
pack

if [ ${#failures[@]} -eq 0 ]; then
  echo "record.sh: all programs recorded, all counts equal or explained; results in $out"
  exit 0
fi
echo "record.sh: ${#failures[@]} failed:"
printf '  %s\n' "${failures[@]}"
exit 1
