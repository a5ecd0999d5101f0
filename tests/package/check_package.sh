#!/usr/bin/env bash
# usage: check_package.sh ARCHIVE [WORK_FOLDER]
# Unpacks the relocatable archive and checks that it runs on another distribution without any install:
#   - no ELF file needs a symbol version above GLIBC_2.34, GLIBCXX_3.4.30 or CXXABI_1.3.13
#   - each needed library is carried and found through the file's own $ORIGIN run path, or belongs to the C library, the
#     C++ library or the compiler's runtime
#   - those three are not carried, no run path is absolute, nothing holds debug information, the archive is small
#   - bin/sonde --version runs in an empty environment, from two different places
set -euo pipefail
export LC_ALL=C

archive=$1
work=${2:-$(mktemp -d)}
max_bytes=$((20 * 1000 * 1000))
declare -A floor=([GLIBC]=2.34 [GLIBCXX]=3.4.30 [CXXABI]=1.3.13)
system='^(lib(c|m|dl|rt|pthread|util|resolv)\.so\.[0-9]+|ld-linux.*\.so\.[0-9]+|libstdc\+\+\.so\.6|libgcc_s\.so\.1)$'

failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

newer() { # a b: version a is above version b
  [ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -n 1)" = "$1" ]
}

bytes=$(stat -c %s "$archive")
((bytes < max_bytes)) || fail "$archive has $bytes bytes, allowed are $max_bytes"

rm -rf "$work/unpacked"
mkdir -p "$work/unpacked"
tar -xzf "$archive" -C "$work/unpacked"
mapfile -t roots < <(find "$work/unpacked" -mindepth 1 -maxdepth 1)
[ "${#roots[@]}" -eq 1 ] || fail "the archive must hold one folder, has ${#roots[@]}"
root=${roots[0]}

check_versions() { # file
  local name kind version symbols
  # The list holds versions that are needed without a symbol too, for example GLIBC_ABI_DT_RELR of glibc 2.36.
  while read -r name; do
    kind=${name%%_*} version=${name#*_}
    if [[ $version =~ ^[0-9.]+$ ]] && ! newer "$version" "${floor[$kind]}"; then continue; fi
    symbols=$(objdump -T "$1" | grep -F '*UND*' | grep -F "$name" | awk '{ print $NF }' | paste -sd' ')
    fail "${1#"$root"/} needs ${symbols:-nothing} of $name, above ${kind}_${floor[$kind]}"
  done < <(objdump -p "$1" | sed -nE 's/^ +0x[0-9a-f]+ 0x[0-9a-f]+ [0-9]+ ((GLIBC|GLIBCXX|CXXABI)_[^ ]+)$/\1/p' | sort -u)
}

check_needed() { # file
  local file=$1 paths needed entry path found
  paths=$(objdump -p "$file" | sed -nE 's/^ *(RUNPATH|RPATH) +//p' | tr ':' ' ')
  for path in $paths; do
    case $path in
      '$ORIGIN' | '$ORIGIN'/*) ;;
      *) fail "${file#"$root"/} has the run path $path, which does not move with the archive" ;;
    esac
  done
  for needed in $(objdump -p "$file" | sed -nE 's/^ *NEEDED +//p'); do
    if [[ $needed =~ $system ]]; then continue; fi
    found=0
    for path in $paths; do
      entry=${path/'$ORIGIN'/$(dirname "$file")}/$needed
      if [ -e "$entry" ] && [[ $(realpath "$entry") == "$(realpath "$root")"/* ]]; then found=1; fi
    done
    ((found)) || fail "${file#"$root"/} needs $needed, which its run path ($paths) does not lead to"
  done
}

elves=0
while IFS= read -r -d '' file; do
  [ "$(head -c 4 "$file" | od -An -c | tr -d ' ')" = '177ELF' ] || continue
  elves=$((elves + 1))
  [[ $(basename "$file") =~ $system ]] && fail "${file#"$root"/} must come from the system"
  check_versions "$file"
  check_needed "$file"
  if objdump -h "$file" | grep -q '\.debug_info'; then fail "${file#"$root"/} holds debug information"; fi
done < <(find "$root" -type f -print0)
((elves >= 2)) || fail "only $elves ELF files"

for wanted in bin/sonde lib/libsonde.so.1 lib/pkgconfig/sonde.pc lib/cmake/Sonde/SondeConfig.cmake \
  include/sonde/sonde.h share/doc/sonde/LICENSE; do
  [ -e "$root/$wanted" ] || fail "$wanted is missing"
done

expected=$(sed -nE 's/^#define SONDE_VERSION_(MAJOR|MINOR|PATCH) //p' "$root/include/sonde/version.h" | paste -sd.)
version_of() { env -i "$1/bin/sonde" --version 2>&1 || true; }
[[ $(version_of "$root") == *"$expected"* ]] || fail "bin/sonde --version says: $(version_of "$root")"
mkdir -p "$work/unpacked/moved here"
mv "$root" "$work/unpacked/moved here/sonde"
root="$work/unpacked/moved here/sonde"
[[ $(version_of "$root") == *"$expected"* ]] || fail "moved, bin/sonde --version says: $(version_of "$root")"

for module in "$root"/lib/sonde/plugins/*.so "$root"/lib/sonde/ports/*.so; do
  [ -e "$module" ] || continue
  [ -s "${module%.so}.yaml" ] || fail "${module#"$root"/} has no manifest"
  symbols=$(nm --dynamic --defined-only --format=posix "$module" | cut -d' ' -f1 | paste -sd' ')
  [ "$symbols" = sonde_plugin_entry ] || fail "${module#"$root"/} shows: $symbols"
done

echo "$(basename "$archive"): $bytes bytes, $elves ELF files, $failures failures"
((failures == 0))
