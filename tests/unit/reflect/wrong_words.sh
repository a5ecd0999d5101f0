#!/usr/bin/env bash
# wrong_words.sh INCLUDE CC CXX: compiles one right and many wrong SONDE_EXPORT lines in C11, C++11 and C++20.
set -u
include=$1
cc=$2
cxx=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
count=0

# try EXPECTED NAME DECLARATION EXPORT
try() {
  local expected=$1 declaration=$2 line=$3
  printf '#include <sonde/export.h>\n%s\nextern const sonde_export_t table[];\nconst sonde_export_t table[] = { %s };\n' \
    "$declaration" "$line" > "$folder/case.c"
  cp "$folder/case.c" "$folder/case.cpp"
  for compiler in "$cc -std=c11" "$cxx -std=c++11" "$cxx -std=c++20"; do
    local source=$folder/case.cpp
    [[ $compiler == *c11 ]] && source=$folder/case.c
    count=$((count + 1))
    if $compiler -I "$include" -c "$source" -o "$folder/case.o" > "$folder/log" 2>&1; then
      [[ $expected == compiles ]] && continue
      echo "compiles with $compiler and must not: $line"
      failed=$((failed + 1))
    elif [[ $expected == compiles ]]; then
      echo "does not compile with $compiler and must: $line"
      cat "$folder/log"
      failed=$((failed + 1))
    fi
  done
}

count_of='static sonde_status count_of(sonde_session_t *session, uint64_t *out) { (void)session; *out = 0; return 0; }'
try compiles "$count_of" 'SONDE_EXPORT(count_of, status, (session, out_u64), "")'
try fails "$count_of" 'SONDE_EXPORT(count_of, status, (session, out_i64), "")'
try fails "$count_of" 'SONDE_EXPORT(count_of, status, (session, out_f64), "")'
try fails "$count_of" 'SONDE_EXPORT(count_of, status, (session, u64), "")'
try fails "$count_of" 'SONDE_EXPORT(count_of, status, (session), "")'
try fails "$count_of" 'SONDE_EXPORT(count_of, status, (session, out_u64, u64), "")'
try fails "$count_of" 'SONDE_EXPORT(count_of, status, (table, out_u64), "")'
try fails "$count_of" 'SONDE_EXPORT(count_of, u32, (session, out_u64), "")'
try fails "$count_of" 'SONDE_EXPORT(count_of, none, (session, out_u64), "")'
try fails "$count_of" 'SONDE_EXPORT(count_of, status, (session, out_number), "")'
try fails "$count_of" 'SONDE_EXPORT(count_elsewhere, status, (session, out_u64), "")'

widths='static uint64_t widths(int32_t a, uint32_t b, int64_t c, uint64_t d, double e) { return (uint64_t)a + b + (uint64_t)c + d + (uint64_t)e; }'
try compiles "$widths" 'SONDE_EXPORT(widths, u64, (i32, u32, i64, u64, f64), "")'
try fails "$widths" 'SONDE_EXPORT(widths, u64, (u32, u32, i64, u64, f64), "")'
try fails "$widths" 'SONDE_EXPORT(widths, u64, (i32, i32, i64, u64, f64), "")'
try fails "$widths" 'SONDE_EXPORT(widths, u64, (i32, u32, i32, u64, f64), "")'
try fails "$widths" 'SONDE_EXPORT(widths, u64, (i32, u32, i64, i64, f64), "")'
try fails "$widths" 'SONDE_EXPORT(widths, u64, (i32, u32, i64, u64, i64), "")'
try fails "$widths" 'SONDE_EXPORT(widths, i64, (i32, u32, i64, u64, f64), "")'

views='static sonde_status views(const uint8_t *a, uint64_t b, const double *c, uint64_t d) { (void)a; (void)b; (void)c; (void)d; return 0; }'
try compiles "$views" 'SONDE_EXPORT(views, status, (bytes, f64s), "")'
try fails "$views" 'SONDE_EXPORT(views, status, (bytes, i64s), "")'
try fails "$views" 'SONDE_EXPORT(views, status, (text, u64, f64s), "")'

floating='static sonde_status floating(float a) { (void)a; return 0; }'
try fails "$floating" 'SONDE_EXPORT(floating, status, (f64), "")'
mutable='static sonde_status mutable_text(char *a) { (void)a; return 0; }'
try fails "$mutable" 'SONDE_EXPORT(mutable_text, status, (text), "")'
try fails "$mutable" 'SONDE_EXPORT(mutable_text, status, (out_text), "")'
callback='static sonde_status visit(sonde_callback_t f, void *u, sonde_drop_user_t d) { (void)f; (void)u; (void)d; return 0; }'
try compiles "$callback" 'SONDE_EXPORT(visit, status, (callback), "")'
try fails "$callback" 'SONDE_EXPORT(visit, status, (callback, u64), "")'
nothing='static uint64_t nothing(void) { return 1; }'
try compiles "$nothing" 'SONDE_EXPORT(nothing, u64, (none), "")'
try fails "$nothing" 'SONDE_EXPORT(nothing, u64, (u64), "")'
own='typedef struct thing thing; static sonde_status own(thing *t) { (void)t; return 0; }
#define SONDE_TYPE_thing thing *
#define SONDE_CODE_thing "h{thing}"'
try compiles "$own" 'SONDE_EXPORT(own, status, (thing), "")'
try fails "$own" 'SONDE_EXPORT(own, status, (session), "")'

echo "$((count - failed)) passed, $failed failed"
[[ $failed == 0 ]]
