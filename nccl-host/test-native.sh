#!/bin/sh
# Compiles the native tests of the host engine: test-native.sh CXX FOLDER [address|thread]. Makes FOLDER/unit-tests,
# FOLDER/stress and FOLDER/fuzz-wire, of the objects that build-native.sh left, or of objects with AddressSanitizer and
# UndefinedBehaviorSanitizer, and the network plugins of the tests, FOLDER/libnccl-net-test8.so to libnccl-net-test12.so; with
# ThreadSanitizer FOLDER/stress alone. Needs GoogleTest (Debian: libgtest-dev).
set -eu
cxx=$1
folder=$2
sanitizer=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
sources=$here/src/main/cpp
tests=$here/src/test/cpp
native=$here/../nccl-presets/src/main/native
flags="-std=c++17 -Wall -Wextra -pthread -I'$native/portable' -I'$native/include' -I'$sources' -I'$tests'"
case $sanitizer in
  "") flags="$flags -O0" ;;
  address)
    flags="$flags -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all"
    sanitize=-fsanitize=address,undefined
    ;;
  thread)
    # GCC warns that ThreadSanitizer ignores fences: no access of the engine needs them to be free of races.
    flags="$flags -O1 -g1 -fsanitize=thread -Wno-tsan"
    sanitize=-fsanitize=thread
    ;;
  *)
    echo "$0: no such sanitizer: $sanitizer" >&2
    exit 2
    ;;
esac
[ -z "${NCCL4J_STRICT:-}" ] || flags="$flags -Werror"

mkdir -p "$folder/engine" "$folder/tests"
if [ -z "$sanitizer" ]; then
  # JavaCPP's name of the platform.
  engine=$here/target/objects/linux-$(uname -m | sed 's/aarch64/arm64/')
  set --
else
  engine=$folder/engine
  set -- "$sources"/*/*.cpp
fi
set -- "$tests/stress.cpp" "$@"
# All unit tests as one source: most of the time of each is that of the templates of GoogleTest and the C++ library.
unit_tests=$folder/unit-tests.cpp
if [ "$sanitizer" != thread ]; then
  for source in "$tests"/*_test.cpp; do
    echo "#include \"$(basename "$source")\""
  done >"$unit_tests.new"
  if cmp -s "$unit_tests" "$unit_tests.new"; then rm "$unit_tests.new"; else mv "$unit_tests.new" "$unit_tests"; fi
  # The longest first.
  set -- "$unit_tests" "$tests/fuzz-wire.cpp" "$@"
fi
# The headers of the C and C++ libraries are parsed once, as in build-native.sh.
headers=$folder/headers.h
sed -n -e '/nccl/d' -e '/^#include </p' "$sources"/*/*.h "$sources"/*/*.cpp | LC_ALL=C sort -u >"$headers.new"
echo "$cxx $flags" | sed 's/^/\/\/ /' >>"$headers.new"
if ! cmp -s "$headers" "$headers.new"; then
  mv "$headers.new" "$headers"
  sh -c "$cxx $flags -x c++-header -o '$headers.gch' '$headers'"
fi
rm -f "$headers.new"
for source in "$@"; do
  object=$folder/tests/$(basename "$source" .cpp).o
  case $source in "$sources"/*) object=$folder/engine/$(basename "$source" .cpp).o ;; esac
  # Compiled again if a header is younger that it may include, and the unit tests if any of them is.
  included='*.h'
  [ "$source" != "$unit_tests" ] || included='*_test.cpp'
  if [ -f "$object" ] && [ -z "$(find "$source" "$headers" "$sources" "$tests" "$native/include" "$native/portable" -newer "$object" \
      \( -name '*.h' -o -name "$included" -o -path "$source" \) -type f)" ]; then
    continue
  fi
  echo "$source $object"
done | xargs -r -P 2 -L 1 sh -c "$cxx $flags -include '$headers' -c \"\$0\" -o \"\$1\""
if [ "$sanitizer" != thread ]; then
  for version in 8 9 10 11 12; do
    plugin=$folder/libnccl-net-test$version.so
    [ -z "$(find "$tests/test-net-plugin.cpp" "$tests/testnet.h" "$sources/transport/netinterface.h" "$0" ! -newer "$plugin" 2>/dev/null |
      sed -n 4p)" ] || continue
    echo "$version $plugin"
  done | xargs -r -P 2 -L 1 sh -c "$cxx $flags -fPIC -fvisibility=hidden -shared -DNET_VERSION=\$0 '$tests/test-net-plugin.cpp' -o \"\$1\""
fi
# link PROGRAM OBJECT...
link() {
  program=$1
  shift
  # shellcheck disable=SC2086 # the compiler may be given with options
  $cxx -pthread ${sanitize:-} -o "$folder/$program" "$@"
}
link stress "$folder/tests/stress.o" "$engine"/*.o
[ "$sanitizer" != thread ] || exit 0
link fuzz-wire "$folder/tests/fuzz-wire.o" "$engine"/*.o
link unit-tests "$folder/tests/unit-tests.o" "$engine"/*.o -lgtest_main -lgtest
