# shellcheck shell=bash disable=SC2154
# What ./nccl4j needs in a checkout only: suggestions for mistyped commands, the tools of the build, its lock and output, and the
# commands for developers. Uses functions and variables of ./nccl4j, which reads this file.

readonly min_maven=3.6.3

# at_least VERSION MINIMUM: compares up to three numbers; a number that is missing is 0.
at_least() {
    local have want i
    IFS=. read -r -a have <<<"${1%%[-+_]*}"
    IFS=. read -r -a want <<<"$2"
    for i in 0 1 2; do
        [[ ${have[i]:-0} =~ ^[0-9]+$ ]] || return 1
        ((10#${have[i]:-0} == 10#${want[i]:-0})) || return $((10#${have[i]:-0} < 10#${want[i]:-0}))
    done
}

# similar_commands WORD: the commands of ./nccl4j --help that at most two changes of a letter make of the word.
similar_commands() {
    usage | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' | sort -u | awk -v word="$1" '
        # The number of letters to insert, to remove or to change.
        function distance(a, b, i, j, change, row) {
            for (j = 0; j <= length(b); j++) row[0, j] = j
            for (i = 1; i <= length(a); i++) {
                row[i, 0] = i
                for (j = 1; j <= length(b); j++) {
                    change = row[i - 1, j - 1] + (substr(a, i, 1) != substr(b, j, 1))
                    row[i, j] = row[i - 1, j] + 1
                    if (row[i, j - 1] + 1 < row[i, j]) row[i, j] = row[i, j - 1] + 1
                    if (change < row[i, j]) row[i, j] = change
                }
            }
            return row[length(a), length(b)]
        }
        distance(word, $0) <= 2 { found = found (found == "" ? "" : " or ") $0 }
        END { print found }'
}

# unknown_command WORD: ends with the commands that look like the word.
unknown_command() {
    local similar
    similar=$(similar_commands "$1")
    say "no such command: '$1'${similar:+; did you mean $similar?}"
    say "See: ./nccl4j --help"
    exit 2
}

# names_example ARGUMENTS: true if one of them is the name of an example, before the -- of a program.
names_example() {
    local list=$root/examples/src/main/resources/io/github/nccl4j/examples/examples.txt word
    [[ -f $list ]] || return 1
    for word in "$@"; do
        [[ $word != -- ]] || return 1
        # shellcheck disable=SC2094 # the list is only read
        [[ $'\n'$(<"$list") != *$'\n'"$word "* ]] || return 0
    done
    return 1
}

maven_version() {
    type -P mvn >/dev/null || return 0
    mvn -v 2>/dev/null | sed 's/\x1b\[[0-9;]*m//g' | sed -n 's/^Apache Maven \([0-9][^ ]*\).*/\1/p'
}

# Prints what the build lacks, a line for each tool: "jdk", "maven" or "g++".
missing_tools() {
    [[ -n $(find_java javac) ]] || echo jdk
    local version
    version=$(maven_version)
    { [[ -n $version ]] && at_least "$version" "$min_maven"; } || echo maven
    type -P g++ >/dev/null || echo g++
}

describe_missing() {
    local tool version
    for tool in "$@"; do
        case $tool in
            jdk)
                version=$(type -P java || true)
                say "missing: a JDK, version $min_java or newer${version:+ ($version is older, or has no compiler)}"
                ;;
            maven)
                version=$(maven_version)
                say "missing: Maven $min_maven or newer${version:+ (mvn on the PATH is $version)}"
                ;;
            *) say "missing: g++, any version with C++17" ;;
        esac
    done
}

# The first of some Debian packages that the package lists offer; nothing if there are no lists.
offered() {
    local package
    for package in "$@"; do
        if [[ $(apt-cache policy "$package" 2>/dev/null) =~ Candidate:\ [0-9] ]]; then
            echo "$package"
            return
        fi
    done
}

# The Debian package of the JDK: one that the package lists offer, or without lists the one that the release is known to have.
jdk_package() {
    local package
    package=$(offered openjdk-{21,17,25}-jdk-headless)
    if [[ -z $package ]]; then
        # shellcheck disable=SC1091
        case $(. /etc/os-release 2>/dev/null && echo "${ID:-}-${VERSION_ID:-}") in
            debian-12 | ubuntu-22.04) package=openjdk-17-jdk-headless ;;
            *) package=openjdk-21-jdk-headless ;;
        esac
    fi
    echo "$package"
}

debian_packages() {
    local tool
    for tool in "$@"; do
        if [[ $tool == jdk ]]; then jdk_package; else echo "$tool"; fi
    done
}

other_packages() {
    say "install with your package manager, for example:"
    say "  Fedora, RHEL:  java-17-openjdk-devel (or newer), maven, gcc-c++"
    say "  SUSE:          java-17-openjdk-devel (or newer), maven, gcc-c++"
    say "  Arch:          jdk17-openjdk (or newer), maven, gcc"
    say "  Alpine:        is not supported, its C library is musl"
}

# The prefix of a command that needs root: nothing for root, sudo if it exists. Fails without both.
root_prefix() {
    if ((EUID == 0)); then return; fi
    type -P sudo >/dev/null && echo "sudo "
}

# as_root COMMAND...: through sudo if necessary.
as_root() {
    if ((EUID != 0)); then set -- sudo -- "$@"; fi
    "$@"
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >&2
}

may_install() {
    root_prefix >/dev/null || return 1
    if [[ $yes == true || -n ${CI:-} ]]; then return 0; fi
    if [[ ! -t 0 || ! -t 2 ]]; then return 1; fi
    local answer
    read -r -p "nccl4j: install $* now? [y/N] " answer
    [[ $answer == [yY]* ]]
}

install_debian() {
    local packages=() prefix update=""
    mapfile -t packages < <(debian_packages "$@")
    if ! may_install "${packages[@]}"; then
        # Minimal systems and containers have no package lists.
        [[ -n $(offered maven) ]] || update=yes
        if prefix=$(root_prefix); then
            say "install with:"
        else
            prefix=
            say "you are not root and there is no sudo; an administrator installs with:"
        fi
        say "  ${update:+${prefix}apt-get update && }${prefix}apt-get install -y --no-install-recommends ${packages[*]}"
        if [[ -n $prefix || $EUID == 0 ]]; then
            say "or run ./nccl4j -y ..., which does that"
        else
            say "a JDK and Maven also work from any folder of yours: set JAVA_HOME, and put Maven's bin on the PATH"
        fi
        exit 1
    fi
    # The lists may be missing or old; only they have the names of its JDKs.
    as_root apt-get update >&2 || say "apt-get update failed; installing with the package lists that are there"
    mapfile -t packages < <(debian_packages "$@")
    say "installing ${packages[*]} ..."
    apt_install "${packages[@]}" ||
        die "apt-get could not install ${packages[*]} (on Ubuntu, maven is in the component universe)"
}

# Sets JAVA_HOME to a JDK. Installs the tools of the build that are missing, or ends with the command that installs them.
need_tools() {
    local missing=()
    mapfile -t missing < <(missing_tools)
    if ((${#missing[@]} > 0)); then
        describe_missing "${missing[@]}"
        if ! type -P apt-get >/dev/null; then
            other_packages
            exit 1
        fi
        install_debian "${missing[@]}"
        hash -r
        mapfile -t missing < <(missing_tools)
        if ((${#missing[@]} > 0)); then
            describe_missing "${missing[@]}"
            [[ " ${missing[*]} " != *" maven "* ]] || say "get a newer Maven from https://maven.apache.org/download.cgi"
            exit 1
        fi
    fi
    JAVA_HOME=$(find_java javac)
    export JAVA_HOME
}

# Installs the programs that some tests use; without its program a test is skipped.
install_test_programs() {
    local entry words packages=()
    for entry in "mpirun openmpi-bin" "python3 python3" "ip iproute2"; do
        read -r -a words <<<"$entry"
        type -P "${words[0]}" >/dev/null || packages+=("${words[@]:1}")
    done
    [[ -e /usr/include/gtest/gtest.h ]] || packages+=(libgtest-dev)
    if ((${#packages[@]} > 0)) && type -P apt-get >/dev/null && root_prefix >/dev/null; then
        say "installing ${packages[*]} for the tests ..."
        as_root apt-get update >&2 || true
        apt_install "${packages[@]}" || say "some of them can't be installed; their tests are skipped"
    fi
}

# show_modules LOG: writes Maven's output into the log, and names each module when its build begins.
show_modules() {
    local line
    while IFS= read -r line; do
        printf '%s\n' "$line" >&3
        if [[ $line =~ ^\[INFO\]\ Building\ nccl4j:\ (.*)\ [^\ ]+\ +\[([0-9]+)/([0-9]+)\]$ ]]; then
            say "  ${BASH_REMATCH[2]} of ${BASH_REMATCH[3]}: ${BASH_REMATCH[1]}"
        fi
    done 3>"$1"
}

# The lock is on the folder itself, so that it leaves no file; it goes with this process, however that ends.
lock() {
    exec 9<"$root"
    flock -n 9 || { say "waiting for another build" && flock 9; }
}

# develop COMMAND [ARGUMENTS]: test, test-one or mutate.
develop() {
    local command=$1 tools=$root/tests/src/tool/java words
    shift
    need_tools
    cd -- "$root" || exit
    case $command in
        test)
            if [[ $yes == true || -n ${CI:-} ]]; then install_test_programs; fi
            [[ -t 1 ]] || set -- -Dstyle.color=never "$@"
            exec "$JAVA_HOME/bin/java" "${quick[@]}" "$tools/RunTests.java" "${properties[@]}" "$@"
            ;;
        test-one)
            (($# > 0)) || die "test-one needs a test class, such as WorkFutureTest or WorkFutureTest#theGivenExecutorCompletesTheFuture"
            lock
            words=$("$JAVA_HOME/bin/java" "${quick[@]}" "$tools/TestOne.java" "$root" /dev/fd/3 "$@" 3>&1 >&2) || exit
            # A test may build, too.
            exec 9<&-
            mapfile -t words <<<"$words"
            [[ -t 1 ]] || words+=(--disable-ansi-colors)
            exec "${words[@]}"
            ;;
        mutate)
            [[ " $* " =~ \ (--help|--table|--sample)\  ]] || build tests
            exec tests/mutation/mutate "$@"
            ;;
    esac
}
