#!/usr/bin/env bash
# usage: cut_release.sh [BUILD_FOLDER]      (default: build/dev)
# Keeps what the ABI tests need of the version that include/sonde/version.h names, in released/<version>/:
#   include/       the public headers
#   libsonde.abi, witness.abi   libabigail's description of the library and of every table
#   plugin.so      a plugin built from these headers, which every later host of this interface must load
# Run it once for a version, after the build, and commit the folder. It never overwrites a release.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(cd "${1:-$top/build/dev}" && pwd)

macro() { sed -n "s/^#define SONDE_VERSION_$1 //p" "$top/include/sonde/version.h"; }
version=$(macro MAJOR).$(macro MINOR).$(macro PATCH)
target=$here/released/$version
if [ -e "$target" ]; then
  echo "$target exists; a release is cut once" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/release/include"
(cd "$top/include" && find sonde \( -name '*.h' -o -name '*.hpp' \) -print0 | xargs -0 cp --parents -t "$work/release/include")

describe() { # file description
  abidw --exported-interfaces-only --no-show-locs --no-corpus-path --no-comp-dir-path \
    --out-file "$2" "$1"
}
describe "$build/lib/libsonde.so" "$work/release/libsonde.abi"
describe "$build/lib/libsonde_witness.so" "$work/release/witness.abi"
structs=$(sed -n 's/^SONDE_EXPORTED void witness_\(.*\)(.*/\1/p' "$build/tests/abi/witness.c")
for struct in $structs; do
  if ! grep -Eq "<(class|union)-decl name='$struct' size" "$work/release/witness.abi"; then
    echo "the description of the witness library lacks $struct" >&2
    exit 1
  fi
done

cc -std=c11 -O2 -shared -fPIC -fvisibility=hidden -Wl,-z,defs -Wl,--build-id=none \
  -Wl,--version-script="$top/sdk/cmake/sonde_plugin.map" -I"$work/release/include" \
  "$here/release_plugin.c" -o "$work/release/plugin.so"
strip --strip-unneeded "$work/release/plugin.so"

mkdir -p "$here/released"
mv "$work/release" "$target"
du -sh "$target"
