#!/bin/sh
# Compiles the host engine: build-native.sh CXX OUTPUT. One object a source, on all processors; the names of sources differ, also
# between folders. An object is made anew only when its source, a header that it includes or this script is younger, or the compiler
# or its options changed. Reductions are compiled with -O3, at which all versions of GCC vectorise loops. NCCL4J_STRICT makes a
# warning an error.
set -eu
cxx=$1
output=$2
here=$(cd "$(dirname "$0")" && pwd)
sources=$here/src/main/cpp
api=$here/../nccl-presets/src/main/native/include
# Replaces what would need a newer system than the one that this code may run on.
portable=$here/../nccl-presets/src/main/native/portable
objects=$(dirname "$output")/../../../../../../../objects/$(basename "$(dirname "$output")")

# Not where this checkout lies: the same sources give the same library. Static TLS: see ofthread.h.
flags="-ffile-prefix-map='$here'=. -std=c++17 -O2 -fPIC -fvisibility=hidden -ftls-model=initial-exec -Wall -Wextra -pthread -I'$portable'"
[ -z "${NCCL4J_STRICT:-}" ] || flags="$flags -Werror"
command="$cxx $flags"

if [ "$(cat "$objects/command" 2>/dev/null)" != "$command" ]; then
  rm -f "$objects"/*.o
elif [ -f "$output" ] && [ -z "$(find "$sources" "$api" "$portable" "$0" -newer "$output" -type f)" ]; then
  exit 0
fi
mkdir -p "$(dirname "$output")" "$objects"

# up_to_date OBJECT: whether nothing that it is made of is younger. The compiler lists the files, and writes "\ " for a space.
up_to_date() {
  [ -f "$1" ] && [ -f "${1%.o}.d" ] || return 1
  # shellcheck disable=SC2016 # of the inner shell
  [ -z "$(sed -e 's/^[^:]*: //' -e 's/\\$//' "${1%.o}.d" |
    xargs sh -c 'find "$@" -newer "$0" 2>/dev/null' "$1" "$here/build-native.sh")" ]
}

# The sources to compile, one a line. An object without a source would be linked.
changed=$objects/changed
: >"$changed"
for object in "$objects"/*.o; do
  ls "$sources"/*/"$(basename "$object" .o).cpp" >/dev/null 2>&1 || rm -f "$object"
done
for source in "$sources"/*/*.cpp; do
  up_to_date "$objects/$(basename "$source" .cpp).o" || echo "$source" >>"$changed"
done

if [ -s "$changed" ]; then
  # The headers of the C and C++ libraries, parsed once for all sources: a third of the work. Not NCCL's, which abi.h includes with
  # another visibility.
  headers=$objects/headers.h
  sed -n -e '/nccl/d' -e '/^#include </p' "$sources"/*/*.h "$sources"/*/*.cpp | LC_ALL=C sort -u >"$headers"
  # It takes as long as it spares three or four sources.
  [ "$(grep -c '' "$changed")" -lt 5 ] || sh -c "$command -x c++-header -o '$headers.gch' '$headers'"
  # An object that could not be compiled must not be taken for that of the source.
  tr '\n' '\0' <"$changed" | xargs -0 -P "$(nproc)" -I {} sh -c "case '{}' in */reduce.cpp) set -- -O3 ;; esac
    object='$objects'/\"\$(basename '{}' .cpp)\".o
    rm -f \"\$object\"
    $command \"\$@\" -MMD -include '$headers' -I'$api' -I'$sources' -c '{}' -o \"\$object\"" build
  rm -f "$headers.gch"
fi
# Before glibc 2.34 libdl has dlopen, and libpthread other functions; later both are empty, and old_systems.h refers to what they had.
# The library is never unloaded: its threads outlive its calls.
# shellcheck disable=SC2086 # the compiler may be given with options
$cxx -shared -pthread -s -Wl,-z,defs -Wl,-z,noexecstack -Wl,-z,nodelete -Wl,--version-script="$here/src/main/cpp/api/exports.map" \
  -o "$output.new" "$objects"/*.o -Wl,--push-state,--no-as-needed,-l:libdl.so.2,-l:libpthread.so.0,--pop-state
"$here/../nccl-presets/tell-apart.sh" "$output.new"
mv "$output.new" "$output"
printf '%s\n' "$command" >"$objects/command"
