# Shared by scripts/demo and scripts/test: installs what is missing on a Debian 12 or 13 (root or sudo), builds a preset.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cores=$(nproc)

packages=(g++ cmake ninja-build ccache libtbb-dev libfmt-dev libdnnl-dev ocl-icd-opencl-dev
  libopencv-core-dev libopencv-imgproc-dev libopencv-imgcodecs-dev libturbojpeg0-dev libjpeg62-turbo-dev
  libcli11-dev nlohmann-json3-dev libprotobuf-dev protobuf-compiler libgtest-dev libgmock-dev libbenchmark-dev pkg-config)

say() { printf '\n== %s\n' "$*"; }

install_packages() {
  local missing=() package
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  say "installing ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "error: not root, and no sudo: install ${missing[*]} yourself" >&2; exit 1; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq || { echo "error: apt-get update failed" >&2; exit 1; }
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null || { echo "error: installing ${missing[*]} failed" >&2; exit 1; }
}

build() { # build PRESET [target...]
  local preset=$1
  shift
  say "building ($preset)"
  (cd "$root" && cmake --preset "$preset" >/dev/null && cmake --build --preset "$preset" -j "$cores" ${1:+--target "$@"}) \
    | grep -vE '^\[[0-9]+/[0-9]+\]' || [ "${PIPESTATUS[0]}" -eq 0 ]
}
