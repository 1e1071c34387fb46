# shellcheck shell=sh
# Kills the processes that its parent has started, once the parent is gone: the parent holds the other end of standard
# input, and the kernel closes it however the parent ends. Uses the commands of the shell alone.
# Its argument is the beginning of the marks, which all descendants have in a variable of their environment.
# Input: a line "+ PID" for each process started, "- PID" for each that has ended.
# The keys of a terminal reach every process of a group: outlive them, and with them the parent.
trap '' HUP INT QUIT TERM
cd /
known=' '
while read -r change pid; do
  case $change in
    +)
      case $known in
        *" $pid "*) ;;
        *) known="$known$pid " ;;
      esac
      ;;
    -)
      case $known in
        *" $pid "*) known="${known%%" $pid "*} ${known#*" $pid "}" ;;
      esac
      ;;
  esac
done

victims=
# A process and its descendants. The kernel lists the children of each thread, on one line without an end.
collect() {
  victims="$victims $1"
  for list in /proc/"$1"/task/*/children; do
    pids=
    read -r pids <"$list"
    for pid in $pids; do collect "$pid"; done
  done
}
# A process before its children: it must not act on their end.
for pid in $known; do collect "$pid"; done
# shellcheck disable=SC2086 # a list
[ -z "$victims" ] || kill -9 $victims

# Then those whose parent was gone before, or that were not there yet. The environment of a process that starts a program is
# not there for a moment: look twice. A process in an uninterruptible call of the kernel stays: give up on it.
marked() {
  while read -r line || [ -n "$line" ]; do
    case $line in *"$1"*) return 0 ;; esac
  done
  return 1
}
clean=0 rounds=0
while [ "$clean" -lt 2 ] && [ "$rounds" -lt 50 ]; do
  clean=$((clean + 1)) rounds=$((rounds + 1))
  for environment in /proc/[0-9]*/environ; do
    if [ -r "$environment" ] && marked "$1" <"$environment"; then
      pid=${environment#/proc/}
      kill -9 "${pid%/environ}" && clean=0
    fi
  done
done
