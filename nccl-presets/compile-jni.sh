#!/bin/sh
# What JavaCPP takes for its C++ compiler; the real one is NCCL4J_CXX. Puts what JavaCPP has generated in order before, with
# the class of NCCL4J_HEADER, which also checks that every native method of NCCL4J_CLASSES is there, and says nothing of where this checkout lies: the same sources give the same library.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

output=
previous=
for argument in "$@"; do
  [ "$previous" != -o ] || output=$argument
  previous=$argument
  case $argument in
    *.cpp) "$NCCL4J_JAVA" -XX:TieredStopAtLevel=1 -cp "$NCCL4J_HEADER:$NCCL4J_CLASSES:$NCCL4J_LIBRARIES" \
      io.github.nccl4j.header.GeneratedJni --source "$argument" --classes "$NCCL4J_CLASSES" --package io.github.nccl4j ;;
  esac
done
# JavaCPP's own code must run on old systems, too: hence the header before each source.
# shellcheck disable=SC2086 # the compiler may be given with options
$NCCL4J_CXX "-ffile-prefix-map=$root=." -include "$root/nccl-presets/src/main/native/portable/old_systems.h" "$@"
case $output in
  *.so) "$(dirname "$0")/tell-apart.sh" "$output" ;;
esac
