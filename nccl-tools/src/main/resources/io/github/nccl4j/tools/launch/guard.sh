# shellcheck shell=sh
# Guard of ChildProcesses: kills the children of its parent and their descendants when the parent has ended.
# The parent holds the other end of standard input; the kernel closes it however the parent ends.
# Input: a line "+ PID" for each started child, "- PID" for each ended child.
# Argument: the prefix of the marks in the descendants' environment.
# Uses only shell builtins.
# Ctrl-C and the like reach the whole process group: ignore them, to outlive the parent.
trap '' HUP INT QUIT TERM
cd /
running=' '
while read -r change pid; do
  case $change in
    +)
      case $running in
        *" $pid "*) ;;
        *) running="$running$pid " ;;
      esac
      ;;
    -)
      case $running in
        *" $pid "*) running="${running%%" $pid "*} ${running#*" $pid "}" ;;
      esac
      ;;
  esac
done

victims=
# Adds a process and its descendants to the victims. A children file is one line without a newline.
collect() {
  victims="$victims $1"
  for list in /proc/"$1"/task/*/children; do
    pids=
    read -r pids <"$list"
    for pid in $pids; do collect "$pid"; done
  done
}
# Parent before children, so that it cannot react to their end.
for pid in $running; do collect "$pid"; done
# shellcheck disable=SC2086 # a list
[ -z "$victims" ] || kill -9 $victims

# Then kill by their mark orphans and processes that started meanwhile. During exec the environment is briefly empty: require
# two scans without a match. A process in an uninterruptible system call stays: give up after 50 scans.
is_marked() {
  while read -r line || [ -n "$line" ]; do
    case $line in *"$1"*) return 0 ;; esac
  done
  return 1
}
clean_scans=0 scans=0
while [ "$clean_scans" -lt 2 ] && [ "$scans" -lt 50 ]; do
  clean_scans=$((clean_scans + 1)) scans=$((scans + 1))
  for environment in /proc/[0-9]*/environ; do
    if [ -r "$environment" ] && is_marked "$1" <"$environment"; then
      pid=${environment#/proc/}
      kill -9 "${pid%/environ}" && clean_scans=0
    fi
  done
done
