#!/usr/bin/env bash
# usage: check_package_test.sh ARCHIVE WORK_FOLDER
# check_package.sh must find each fault that is put into a copy of the archive.
set -euo pipefail
archive=$(realpath "$1")
work=$2/faults
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work"

failures=0
expect_fault() { # name, expected text, function that spoils the unpacked tree (its folder is $1)
  local folder=$work/$1
  mkdir -p "$folder/tree"
  tar -xzf "$archive" -C "$folder/tree"
  "$3" "$(find "$folder/tree" -mindepth 1 -maxdepth 1)"
  tar -czf "$folder/archive.tar.gz" -C "$folder/tree" .
  if bash "$here/check_package.sh" "$folder/archive.tar.gz" "$folder" >"$folder/output" 2>&1; then
    echo "FAILED: $1 was not found"
    failures=$((failures + 1))
  elif ! grep -q "^FAILED: .*$2" "$folder/output"; then
    echo "FAILED: $1 was reported as:"
    cat "$folder/output"
    failures=$((failures + 1))
  fi
  rm -rf "$folder"
}

library() { # output, source text, flags...
  local output=$1 text=$2
  shift 2
  cc -x c -shared -fPIC -o "$output" - "$@" <<<"$text"
}

newer_symbol() { library "$1/lib/extra.so" 'unsigned arc4random(void); unsigned f(void) { return arc4random(); }'; }
absolute_path() { library "$1/lib/extra.so" 'int f(void) { return 1; }' -Wl,-rpath,/opt/elsewhere; }
debug_information() { library "$1/lib/extra.so" 'int f(void) { return 1; }' -g; }
missing_library() { rm "$1"/lib/libfmt.so.*; }
system_library() { cp "$(cc -print-file-name=libgcc_s.so.1)" "$1/lib/libgcc_s.so.1"; }
no_run_path() {
  mkdir -p "$1/lib/deeper"
  library "$1/lib/deeper/extra.so" 'int ZSTD_versionNumber(void); int f(void) { return ZSTD_versionNumber(); }' \
    -Wl,--no-as-needed -lzstd
}
broken_command() { printf '#!/bin/sh\nexit 1\n' >"$1/bin/sonde"; }
two_symbols() {
  mkdir -p "$1/lib/sonde/plugins"
  library "$1/lib/sonde/plugins/extra.so" 'int sonde_plugin_entry = 1, other = 2;'
  echo 'id: extra' >"$1/lib/sonde/plugins/extra.yaml"
}
no_manifest() {
  mkdir -p "$1/lib/sonde/plugins"
  library "$1/lib/sonde/plugins/extra.so" 'int sonde_plugin_entry = 1;' -Wl,--version-script="$here/../../sdk/cmake/sonde_plugin.map"
}

expect_fault newer_symbol 'arc4random of GLIBC_2.36' newer_symbol
expect_fault absolute_path '/opt/elsewhere' absolute_path
expect_fault debug_information 'debug information' debug_information
expect_fault missing_library 'needs libfmt' missing_library
expect_fault system_library 'must come from the system' system_library
expect_fault no_run_path 'needs libzstd' no_run_path
expect_fault broken_command 'bin/sonde --version' broken_command
expect_fault two_symbols 'shows: ' two_symbols
expect_fault no_manifest 'has no manifest' no_manifest

echo "9 faults, $failures not found"
((failures == 0))
