#!/bin/sh
# What JavaCPP takes for its C++ compiler; the real one is NCCL4J_CXX. JavaCPP writes functions and the names of members in
# the order in which the JVM lists methods, which is another one in each run: they are sorted, so that the same sources give
# the same library.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

sort_source() {
  # A function becomes a line; they all go to the end, where everything is declared. Tables of members and of their offsets
  # have a line for each class, with its size first.
  LC_ALL=C awk -v functions="$1.functions" '
    function sorted(line, head, tail, elements, n, i, j, one) {
      head = line; sub(/\{ .*/, "{ ", head)
      tail = substr(line, index(line, " }"))
      line = substr(line, length(head) + 1, length(line) - length(head) - length(tail))
      gsub(/, offsetof/, "\002offsetof", line)
      gsub(/, "/, "\002\"", line)
      n = split(line, elements, "\002")
      for (i = 3; i <= n; i++) {
        one = elements[i]
        for (j = i - 1; j >= 2 && elements[j] > one; j--) elements[j + 1] = elements[j]
        elements[j + 1] = one
      }
      for (i = 1; i <= n; i++) head = head (i > 1 ? ", " : "") elements[i]
      return head tail
    }
    /^static (const char\*|int) JavaCPP_(members|offsets)\[/ { table = 1 }
    table && /^ +\{ .* \}/ { print sorted($0); if (/;$/) table = 0; next }
    /^JNIEXPORT .* Java_/ { inside = 1 }
    !inside { print; next }
    { text = text $0 "\001" }
    $0 == "}" { print text >functions; text = ""; inside = 0 }
    END { if (inside || table) exit 1 }' "$1" >"$1.rest"
  LC_ALL=C sort "$1.functions" | tr '\001' '\n' >"$1.sorted"
  # The last brace is that of extern "C".
  end=$(grep -n '^}$' "$1.rest" | tail -n 1 | cut -d : -f 1)
  {
    head -n $((end - 1)) "$1.rest"
    cat "$1.sorted"
    tail -n "+$end" "$1.rest"
  } >"$1"
  rm "$1.functions" "$1.rest" "$1.sorted"
}

for argument in "$@"; do
  case $argument in
    *.cpp) if grep -q '^JNIEXPORT .* Java_' "$argument"; then sort_source "$argument"; fi ;;
  esac
done
# shellcheck disable=SC2086 # the compiler may be given with options
exec $NCCL4J_CXX "-ffile-prefix-map=$root=." "$@"
