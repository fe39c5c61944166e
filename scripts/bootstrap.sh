#!/usr/bin/env bash
# Set-up that quickstart.sh and test.sh share: Debian packages, the pinned LibTorch, configure and build.
#
#   scripts/bootstrap.sh [--no-build]
#
# LIBTORCH=/path      an existing LibTorch (folder with include/ and lib/); nothing is fetched then
# MM_DEPS_DIR=/path   where the fetched LibTorch is kept            (default: ~/.cache/mmkit)
# MM_BUILD_DIR=/path  build directory                               (default: build)
# MM_JOBS=N           parallel compile jobs                         (default: all cores, at most one per 2 GiB)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

torch_version=2.11.0
deps_dir=${MM_DEPS_DIR:-$HOME/.cache/mmkit}
build_dir=${MM_BUILD_DIR:-build}

say() { printf '== %s\n' "$*" >&2; }

# With MM_FOR_TESTS also what tests alone need.
missing_packages() {
  local lists=(scripts/debian-packages.txt)
  [ -z "${MM_FOR_TESTS:-}" ] || lists+=(scripts/debian-packages-test.txt)
  while read -r package; do
    [ -n "$package" ] || continue
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$package"
  done < <(cat "${lists[@]}")
}

install_packages() {
  local missing; missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" = 0 ]; then
    local run=""
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    local run="sudo"
  else
    echo "These Debian packages are missing and this user may not install them; run:" >&2
    echo "  apt-get install --no-install-recommends $missing" >&2
    exit 69
  fi
  say "installing $missing"
  $run apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $run apt-get install -y -qq --no-install-recommends $missing >&2
}

# fetch_wheel NAME VERSION SHA256 TARGET PLATFORM...: downloads one wheel, checks it, unpacks it into TARGET.
fetch_wheel() {
  local name=$1 version=$2 sha256=$3 target=$4; shift 4
  local platforms=(); for platform in "$@"; do platforms+=(--platform "$platform"); done
  local download="$deps_dir/download"
  mkdir -p "$download"
  local file; file=$(find "$download" -maxdepth 1 -name "${name//-/_}-$version-*.whl" | head -n 1)
  if [ -z "$file" ] || ! echo "$sha256  $file" | sha256sum --check --status; then
    say "fetching $name $version"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.11 --implementation cp \
      "${platforms[@]}" --dest "$download" "$name==$version"
    file=$(find "$download" -maxdepth 1 -name "${name//-/_}-$version-*.whl" | head -n 1)
  fi
  echo "$sha256  $file" | sha256sum --check --status || {
    echo "$file: checksum differs from the pinned one ($sha256); delete it and run again" >&2; exit 65; }
  python3 -m zipfile -e "$file" "$target"
  rm -f "$file"
}

fetch_libtorch() {
  if [ -n "${LIBTORCH:-}" ]; then
    [ -e "$LIBTORCH/lib/libtorch_cpu.so" ] || { echo "LIBTORCH=$LIBTORCH: no lib/libtorch_cpu.so in it" >&2; exit 2; }
    return 0
  fi
  local target="$deps_dir/torch-$torch_version"
  [ -e "$target/torch/lib/libtorch_cpu.so" ] && [ -e "$target/nvidia/cu13/lib/libcudart.so.13" ] \
    && [ -e "$target/nvidia/cu13/lib/libcupti.so.13" ] && return 0
  local partial="$target.partial.$$"
  rm -rf "$partial"
  mkdir -p "$partial"
  fetch_wheel torch "$torch_version" 7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a "$partial" manylinux_2_28_x86_64
  fetch_wheel nvidia-cuda-runtime 13.0.96 7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548 "$partial" manylinux2014_x86_64 manylinux_2_17_x86_64
  fetch_wheel nvidia-cuda-cupti 13.0.85 4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8 "$partial" manylinux_2_25_x86_64
  rm -rf "$target"
  mv "$partial" "$target"
}

build() {
  local jobs memory_gib
  memory_gib=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  jobs=$(nproc)
  [ "$jobs" -le $((memory_gib / 2)) ] || jobs=$((memory_gib / 2))
  [ "$jobs" -ge 1 ] || jobs=1
  say "building in $build_dir"
  cmake -S . -B "$build_dir" -G Ninja ${LIBTORCH:+-DLIBTORCH="$LIBTORCH"} ${MM_DEPS_DIR:+-DMM_DEPS_DIR="$MM_DEPS_DIR"} \
    ${MM_CMAKE_ARGS:-} >"$build_dir.configure.log" 2>&1 || { cat "$build_dir.configure.log" >&2; rm -f "$build_dir.configure.log"; exit 70; }
  rm -f "$build_dir.configure.log"
  ninja -C "$build_dir" -j "${MM_JOBS:-$jobs}" ${MM_TARGETS:-} >&2
}

install_packages
fetch_libtorch
[ "${1:-}" = --no-build ] || build
