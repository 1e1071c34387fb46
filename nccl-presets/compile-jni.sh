#!/bin/sh
# What JavaCPP takes for its C++ compiler; the real one is NCCL4J_CXX. Puts what JavaCPP has generated in order before, with
# the class of NCCL4J_HEADER, which also checks that every native method of NCCL4J_CLASSES is there, and says nothing of where this checkout lies: the same sources give the same library.
# Compiles only if something has changed since the last time, which takes 20 s.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
presets=$root/nccl-presets
module=$root/${NCCL4J_MODULE:-nccl-presets}
generated=$module/target/generated-sources

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
# The input: the command, this script, the sources and their headers.
made_from=$generated/$(basename "$(dirname "$output")").made-from
{
  echo "$NCCL4J_CXX $*"
  for argument in "$@"; do
    case $argument in *.cpp) cat "$argument" ;; esac
  done
  find "$presets/src/main/native" "$module/src/main/native" "$generated/native" "$0" "$presets/tell-apart.sh" \
    -type f -print -exec cat {} +
} >"$made_from.new"
if [ -f "$output" ] && [ -f "$made_from" ] && [ "$(cksum <"$made_from.new")" = "$(cat "$made_from")" ]; then
  rm "$made_from.new"
  exit 0
fi
# JavaCPP's own code must run on old systems, too: hence the header before each source.
# shellcheck disable=SC2086 # the compiler may be given with options
$NCCL4J_CXX "-ffile-prefix-map=$root=." -include "$presets/src/main/native/portable/old_systems.h" "$@"
"$presets/tell-apart.sh" "$output"
cksum <"$made_from.new" >"$made_from"
rm "$made_from.new"
