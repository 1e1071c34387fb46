# shellcheck shell=sh
# Kills the processes that its parent has started, once the parent is gone: the parent holds the other end of standard
# input, and the kernel closes it however the parent ends. Uses nothing but what is built into the shell.
# Input: a line "+ PID" for each process started, "- PID" for each that has ended.
# The keys of a terminal reach every process of a group: outlive them, and with them the parent.
trap '' HUP INT QUIT TERM
cd /
known=' '
while read -r what pid; do
  case $what in
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
for pid in $known; do collect "$pid"; done
# shellcheck disable=SC2086 # a list
[ -z "$victims" ] || kill -9 $victims
