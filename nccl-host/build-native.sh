#!/bin/sh
# Compiles the host engine: build-native.sh CXX OUTPUT. One object a source, two at a time; done anew only when a source,
# a header or this script is younger than OUTPUT, or the compiler or its options changed. Reductions are compiled with -O3,
# at which all versions of GCC vectorise loops. NCCL4J_STRICT makes a warning an error.
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

if [ -f "$output" ] && [ "$(cat "$objects/command" 2>/dev/null)" = "$command" ] \
    && [ -z "$(find "$sources" "$api" "$portable" "$0" -newer "$output" -type f)" ]; then
  exit 0
fi
mkdir -p "$(dirname "$output")" "$objects"
rm -f "$objects"/*.o
# The headers of the C and C++ libraries, parsed once for all sources: a third of the work. Not NCCL's, which abi.h includes with
# another visibility.
headers=$objects/headers.h
sed -n -e '/nccl/d' -e '/^#include </p' "$sources"/*.h "$sources"/*.cpp | LC_ALL=C sort -u >"$headers"
sh -c "$command -x c++-header -o '$headers.gch' '$headers'"
for source in "$sources"/*.cpp; do
  echo "$source"
done | xargs -P 2 -I {} sh -c "case '{}' in */reduce.cpp) set -- -O3 ;; esac
  $command \"\$@\" -include '$headers' -I'$api' -c '{}' -o '$objects'/\"\$(basename '{}' .cpp)\".o" build
rm -f "$headers.gch"
# Before glibc 2.34 libdl has dlopen, and libpthread other functions; later both are empty, and old_systems.h refers to what they had.
# The library is never unloaded: its threads outlive its calls.
# shellcheck disable=SC2086 # the compiler may be given with options
$cxx -shared -pthread -s -Wl,-z,defs -Wl,-z,noexecstack -Wl,-z,nodelete -Wl,--version-script="$here/src/main/cpp/exports.map" \
  -o "$output.new" "$objects"/*.o -Wl,--push-state,--no-as-needed,-l:libdl.so.2,-l:libpthread.so.0,--pop-state
"$here/../nccl-presets/tell-apart.sh" "$output.new"
mv "$output.new" "$output"
printf '%s\n' "$command" >"$objects/command"
