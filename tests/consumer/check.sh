#!/bin/sh
# Builds one consumer against the installed package and runs it.
#   check.sh plugin NAME SOURCE PREFIX WORK EMBED   a plugin; EMBED is the program of embed_c
#   check.sh build NAME SOURCE PREFIX WORK           builds and runs nothing
#   check.sh program NAME SOURCE PREFIX WORK [TARGET]
#   check.sh pkg-config NAME SOURCE PREFIX WORK
# No path of the source or build tree is given to the compiler but SOURCE itself.
set -eu

kind=$1
name=$2
source=$3
prefix=$4
work=$5
shift 5

rm -rf "$work"
mkdir -p "$work"
library=$prefix/lib

configure_and_build() {
  cmake -S "$source" -B "$work" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$prefix" \
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF > "$work/configure.log" 2>&1 || { cat "$work/configure.log"; exit 1; }
  cmake --build "$work" > "$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
  if grep -q "warning:" "$work/build.log"; then
    cat "$work/build.log"
    echo "$name: the public headers must compile without a warning"
    exit 1
  fi
}

case $kind in
  plugin)
    embed=$1
    configure_and_build
    module=$work/$name.so
    symbols=$(nm -D --defined-only "$module" | awk '{print $NF}')
    if [ "$symbols" != sonde_plugin_entry ]; then
      echo "$name shows more than its entry: $symbols"
      exit 1
    fi
    if readelf -d "$module" | grep -q "NEEDED.*libsonde"; then
      echo "$name links libsonde"
      exit 1
    fi
    if [ ! -s "$work/$name.yaml" ]; then
      echo "$name has no manifest beside it"
      exit 1
    fi
    SONDE_PLUGIN_PATH=$work "$prefix/bin/sonde" list > "$work/list.txt"
    grep -q "$name" "$work/list.txt" || { cat "$work/list.txt"; echo "sonde list does not show $name"; exit 1; }
    "$embed" "$module" "$name"
    ;;
  build)
    configure_and_build
    ;;
  program)
    target=${1:-embed}
    configure_and_build
    "$work/$target"
    ;;
  pkg-config)
    flags=$(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs sonde)
    # shellcheck disable=SC2086
    cc -std=c11 "$source"/*.c -o "$work/$name" $flags "-Wl,-rpath,$library"
    set +e
    "$work/$name" > "$work/usage.txt" 2>&1
    status=$?
    set -e
    if [ $status -ne 2 ] || ! grep -q usage "$work/usage.txt"; then
      cat "$work/usage.txt"
      echo "$name built by pkg-config does not run (status $status)"
      exit 1
    fi
    ;;
  *)
    echo "unknown kind $kind"
    exit 2
    ;;
esac
