# Shared by scripts/demo and scripts/test: installs what is missing on a Debian 12 or 13 (root or sudo), builds a preset,
# and says how long each part took. A failure is one line that begins with "error: ". Running the script again continues.
#   TANDEM_NO_INSTALL=1          installs nothing: what is missing is found by the build
#   TANDEM_ARCHITECTURE=arm64    builds for this architecture of Debian, with the cross compiler and the libraries of that
#                                architecture, which dpkg --add-architecture must have named
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cores=$(nproc)

packages=(g++ cmake ninja-build ccache libtbb-dev libfmt-dev libdnnl-dev ocl-icd-opencl-dev
  libhwy-dev libopencv-core-dev libopencv-imgproc-dev libopencv-imgcodecs-dev libturbojpeg0-dev libjpeg-dev libgif-dev libheif-dev libpng-dev
  libicu-dev libzip-dev libcurl4-openssl-dev
  libcli11-dev nlohmann-json3-dev libprotobuf-dev protobuf-compiler libgtest-dev libgmock-dev libbenchmark-dev pkg-config
  libopenmpi-dev openmpi-bin)

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# The comment at the top of the script that was called is its help.
usage() { sed -n '2,/^[^#]/{/^#/!d;s/^# \{0,1\}//;p}' "$0"; }
fail_usage() { fail "$*"$'\n\n'"$(usage)"; }
case ${1:-} in -h | --help) usage; exit 0 ;; esac

duration() { # duration SECONDS
  if [ "$1" -lt 60 ]; then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi
}

parts=() part_started=0
begin() { # begin WHAT: starts the clock of a part
  part_started=$SECONDS
  say "$1"
}
finish() { # finish NAME: says how long the part took
  parts+=("$1 $(duration $((SECONDS - part_started)))")
  echo "-- $1: $(duration $((SECONDS - part_started)))"
}
say_times() {
  local text
  text=$(printf '%s, ' "${parts[@]}")
  say "took $(duration $SECONDS): ${text%, }"
}

# require_space FOLDER MIB WHAT
require_space() {
  local free
  free=$(df -Pm "$1" 2>/dev/null | awk 'NR == 2 { print $4 }')
  [ -z "$free" ] || [ "$free" -ge "$2" ] || fail "$3 needs $2 MiB, but the disk of $1 has $free MiB left"
}

# The line in which apt, dpkg or sudo says what is wrong: what could not be fetched, else the last error.
apt_error() {
  local fetch
  fetch=$(grep -E '^E: Failed to fetch|^W: Failed to fetch' "$1" | sort | head -n 1)
  if [ -n "$fetch" ]; then
    echo "no network? ${fetch:0:300}"
  else
    grep -E '^(E:|W:|dpkg: error|sudo:)' "$1" | tail -n 1 | cut -c 1-300
  fi
}

# Whether the build is for another architecture than this machine's.
is_cross() { [ -n "${TANDEM_ARCHITECTURE:-}" ] && [ "$TANDEM_ARCHITECTURE" != "$(dpkg --print-architecture)" ]; }

# The packages of a build for another architecture: its compiler, programs of this machine, and libraries of that one. What
# `abidiff` and `valgrind` test has no use for them.
cross_packages() {
  local package
  for package in "${packages[@]}"; do
    case $package in
      g++) echo "crossbuild-essential-$TANDEM_ARCHITECTURE" ;;
      libcli11-dev | nlohmann-json3-dev) echo "$package" ;;
      abigail-tools | valgrind) ;;
      lib* | ocl-icd-opencl-dev | openmpi-bin) echo "$package:$TANDEM_ARCHITECTURE" ;;
      *) echo "$package" ;;
    esac
  done
}

install_packages() {
  [ -z "${TANDEM_NO_INSTALL:-}" ] || return 0
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null \
    || fail "no apt-get here: install the equivalents of ${packages[*]}, then set TANDEM_NO_INSTALL=1"
  local missing=() package
  if is_cross; then mapfile -t packages < <(cross_packages); fi
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  begin "installing ${missing[*]}"
  local as_root=() log
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "not root, and no sudo: ask for these packages: ${missing[*]}"
    as_root=(sudo)
  fi
  require_space /usr 1500 "installing the packages"
  log=$(mktemp) || fail "no temporary file can be made in ${TMPDIR:-/tmp}"
  # apt-get update fails for one broken source, too, which need not matter. What matters is found when installing.
  "${as_root[@]}" apt-get update -qq >"$log" 2>&1 || true
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >>"$log" 2>&1 </dev/null; then
    local why
    why=$(apt_error "$log")
    rm -f "$log"
    fail "the packages could not be installed: ${why:-apt-get install failed}"
  fi
  rm -f "$log"
  finish packages
}

# What a build needs that cannot be installed here, or was installed some other way.
require_tools() {
  local compiler=${CXX:-c++} version
  if is_cross; then compiler=$(sed -n 's/^set(CMAKE_CXX_COMPILER \(.*\))/\1/p' "$root/cmake/$TANDEM_ARCHITECTURE.cmake"); fi
  command -v "${compiler%% *}" >/dev/null || fail "no C++ compiler: '$compiler' was not found (Debian: apt-get install g++)"
  command -v cmake >/dev/null || fail "no cmake (Debian: apt-get install cmake)"
  command -v ninja >/dev/null || fail "no ninja (Debian: apt-get install ninja-build)"
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
  [ "$(printf '3.25\n%s\n' "$version" | sort -V | head -n 1)" = 3.25 ] \
    || fail "CMake $version ($(command -v cmake)) is too old: 3.25 is needed"
}

# step_name WHAT: what ninja says it does, in short: the target and the file of an object file, else the last word.
step_name() {
  local file=${1##*[ /]}
  if [[ $1 =~ CMakeFiles/([^/]*)\.dir/ ]]; then file=${BASH_REMATCH[1]}/${file%.o}; fi
  echo "$file"
}

# Reads ninja's output. On a terminal one line is updated, elsewhere there is a line for every 10 %. Anything that is
# not progress is passed on. The exit status is 28 (ENOSPC) if a tool found the disk full, otherwise 0.
show_progress() { # show_progress WHAT
  local result=0 what=$1 line percent done_of step last=-1 on_terminal='' width
  if [ -t 1 ]; then on_terminal=1; width=$(tput cols 2>/dev/null || echo 80); fi
  while IFS= read -r line; do
    [[ $line != *Re-checking\ globbed\ directories... ]] || continue
    if [[ $line =~ ^@\ *([0-9]+)%\ ([0-9]+/[0-9]+)\ (.*)$ ]]; then
      percent=${BASH_REMATCH[1]} done_of=${BASH_REMATCH[2]} step=$(step_name "${BASH_REMATCH[3]}")
      if [ -n "$on_terminal" ]; then
        line="$what: $percent % ($done_of) $step"
        printf '\r\033[K%s' "${line:0:$((width - 1))}"
      elif [ $((percent / 10)) -gt "$last" ]; then
        last=$((percent / 10))
        echo "$what: $percent % ($done_of) $step, after $(duration $((SECONDS - part_started)))"
      fi
    else
      [ -z "$on_terminal" ] || printf '\r\033[K'
      case $line in
        *'No space left on device'*) result=28; printf '%s\n' "$line" ;;
        'ninja: no work to do.' | 'ninja: Entering directory'* | '') ;;
        *) printf '%s\n' "$line" ;;
      esac
    fi
  done
  [ -z "$on_terminal" ] || printf '\r\033[K'
  return $result
}

# A configuration that failed at first is removed, so that the next one starts afresh, and one that was copied or moved
# here with the tree, which CMake refuses.
configure() { # configure PRESET FOLDER [option...]
  local preset=$1 folder=$2 log new='' home
  shift 2
  if is_cross; then set -- "-DCMAKE_TOOLCHAIN_FILE=$root/cmake/$TANDEM_ARCHITECTURE.cmake" "$@"; fi
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:[A-Z]*=//p' "$folder/CMakeCache.txt" 2>/dev/null) || true
  if [ -n "$home" ] && ! [ "$home" -ef "$root" ]; then
    echo "-- $folder was configured as $home: building all of it again"
    rm -rf "$folder/CMakeCache.txt" "$folder/CMakeFiles" "$folder/build.ninja"
  fi
  [ -e "$folder/build.ninja" ] || new=1
  begin "configuring ($preset)"
  mkdir -p "$folder" 2>/dev/null || fail "$folder cannot be made: is $root writable?"
  log=$folder/configure.log
  if ! (cd "$root" && cmake --preset "$preset" "$@") >"$log" 2>&1; then
    local why
    why=$(awk '/^CMake Error/ { found = 1; next }
               found && NF { sub(/^ +/, ""); text = text (text == "" ? "" : " ") $0 }
               found && !NF && text != "" { exit }
               END { print text }' "$log" | cut -c 1-400)
    if [ -n "$new" ]; then rm -rf "$folder/CMakeCache.txt" "$folder/CMakeFiles"; fi
    require_space "$folder" 20 "configuring"
    fail "configuring failed: ${why:-$(tail -n 1 "$log")} (all of it: $log)"
  fi
  grep -E 'NVIDIA GPUs|: not built|^-- Without' "$log" | sort -u || true
  finish configure
}

build() { # build PRESET [target...]
  local preset=$1 folder=$root/build options=()
  shift
  [ "$preset" = release ] || folder=$root/build-$preset
  require_tools
  require_space "$root" 1000 "building"
  # Asked for, unless this folder was configured with something else than the default.
  if [ -n "${cuda:-}" ] && ! grep -qsE '^TANDEM_CUDA:[A-Z]*=(ON|OFF)$' "$folder/CMakeCache.txt"; then
    options=("-DTANDEM_CUDA=$cuda")
  fi
  configure "$preset" "$folder" ${options[@]+"${options[@]}"}
  begin "building ($preset)"
  local results=(0 0)
  NINJA_STATUS='@%p %f/%t ' cmake --build "$folder" -j "$cores" ${1:+--target "$@"} 2>&1 | show_progress building \
    || results=("${PIPESTATUS[@]}")
  if [ "${results[0]}" -ne 0 ]; then
    [ "${results[1]}" -ne 28 ] || fail "building failed: no space is left on a disk (make some; running this again continues)"
    fail "building failed; the reason is above (running this again continues)"
  fi
  finish "build ($preset)"
}
