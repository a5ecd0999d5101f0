#!/usr/bin/env bash
# usage: check_deb.sh FOLDER WORK_FOLDER
# The one .deb in FOLDER carries no library of others, depends on the packages that do, and its command runs.
set -euo pipefail
packages=("$1"/*.deb)
work=$2/deb
rm -rf "$work"
mkdir -p "$work"
[ "${#packages[@]}" -eq 1 ] || { echo "FAILED: ${#packages[@]} packages in $1"; exit 1; }
dpkg-deb --extract "${packages[0]}" "$work"

failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

carried=$(find "$work" -name '*.so*' -not -name 'libsonde*' -not -path '*/lib/sonde/*')
[ -z "$carried" ] || fail "carries $carried"
depends=$(dpkg-deb --field "${packages[0]}" Depends)
while read -r needed; do
  case $needed in libsonde* | ld-linux*) continue ;; esac
  file=$(ldconfig -p | awk -v name="$needed" '$1 == name && !found { print $NF; found = 1 }')
  owner=$(dpkg-query --search "$(realpath "$file")" 2>/dev/null || dpkg-query --search "$file")
  owner=${owner%%:*}
  [[ ", $depends" == *", $owner "* || ", $depends," == *", $owner,"* ]] || fail "needs $needed of $owner, depends on: $depends"
done < <(find "$work" -type f \( -name '*.so*' -o -path '*/bin/sonde' \) -exec objdump -p {} \; 2>/dev/null |
  sed -nE 's/^ *NEEDED +//p' | sort -u)

expected=$(sed -nE 's/^#define SONDE_VERSION_(MAJOR|MINOR|PATCH) //p' "$work/usr/include/sonde/version.h" | paste -sd.)
said=$(env -i "$work/usr/bin/sonde" --version 2>&1 || true)
[[ $said == *"$expected"* ]] || fail "usr/bin/sonde --version says: $said"
[ "$(dpkg-deb --field "${packages[0]}" Version)" = "$expected" ] || fail "the package's version is not $expected"

echo "$(basename "${packages[0]}"): $failures failures"
((failures == 0))
