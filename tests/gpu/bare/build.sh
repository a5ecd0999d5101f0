#!/usr/bin/env bash
# Builds the bare CUPTI client: bare/build.sh OUTPUT.so [CUDA_HOME]
#
# Headers come from the toolkit; the library from the toolkit or, where it has none, from Python's
# CUDA packages. The run path holds where it was found, but a process that has loaded a
# libcupti of the same name before (PyTorch does) keeps using its own.
set -euo pipefail

output=${1:?usage: build.sh OUTPUT.so [CUDA_HOME]}
cuda_home=${2:-${CUDA_HOME:-/usr/local/cuda}}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

first_folder_with() {  # first_folder_with FILE-PATTERN FOLDER...
  local pattern=$1 folder
  shift
  for folder in "$@"; do
    if compgen -G "$folder/$pattern" >/dev/null; then
      printf '%s\n' "$folder"
      return 0
    fi
  done
  return 1
}

mapfile -t python_folders < <(python3 - <<'PYTHON' 2>/dev/null || true
import glob
import site
import sysconfig

roots = set(site.getsitepackages()) | {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
for root in sorted(roots):
    for pattern in ("nvidia/cu*/", "nvidia/cuda_cupti/"):
        for folder in sorted(glob.glob(f"{root}/{pattern}")):
            print(folder.rstrip("/"))
PYTHON
)

include=$(first_folder_with cupti.h "$cuda_home/include" "$cuda_home/extras/CUPTI/include" \
  "$cuda_home/targets/x86_64-linux/include" "${python_folders[@]/%//include}") || {
  echo "build.sh: no cupti.h below $cuda_home or Python's CUDA packages" >&2
  exit 1
}
library=$(first_folder_with 'libcupti.so.*' "$cuda_home/lib64" "$cuda_home/extras/CUPTI/lib64" \
  "$cuda_home/targets/x86_64-linux/lib" "${python_folders[@]/%//lib}") || {
  echo "build.sh: no libcupti.so.* below $cuda_home or Python's CUDA packages" >&2
  exit 1
}
# The file whose name carries the major version only, so that the loader asks for that name.
name=$(cd "$library" && printf '%s\n' libcupti.so.* | sort | head -n 1)

includes=(-I "$include")
[ "$include" = "$cuda_home/include" ] || includes+=(-I "$cuda_home/include")
"${CXX:-g++}" -std=c++17 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden \
  "${includes[@]}" "$here/bare_cupti.cpp" -o "$output" \
  -L "$library" -l ":$name" -Wl,-rpath,"$library" -Wl,-z,defs
echo "$output: headers from $include, $library/$name"
