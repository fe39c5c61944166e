#!/usr/bin/env bash
# Fetches Arrow's C++ library (headers and shared objects of the pyarrow wheel; no Python is used at run time), so that the next build
# makes libmm_parquet.so, which `mmshard` loads when a Parquet source is named.
#
#   scripts/fetch-arrow.sh
#
# MM_DEPS_DIR=/path   where it is kept, beside LibTorch   (default: ~/.cache/mmkit)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=26.0.1
sha256=39cb0f2418282c24bea6ceda77b03e5a8f0a5766b63a8bf194d4e2a2c423548c
deps_dir=${MM_DEPS_DIR:-$HOME/.cache/mmkit}
target="$deps_dir/arrow-$version"

if [ -e "$target/pyarrow/include/parquet/api/reader.h" ]; then
  echo "== Arrow $version is there: $target" >&2
  exit 0
fi
download="$deps_dir/download"
file="$download/pyarrow-$version-cp311-cp311-manylinux_2_28_x86_64.whl"
partial="$target.partial.$$"
trap 'rm -rf "$partial"' EXIT
mkdir -p "$download"
if [ ! -e "$file" ] || ! echo "$sha256  $file" | sha256sum --check --status; then
  echo "== fetching pyarrow $version" >&2
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.11 --implementation cp \
    --platform manylinux_2_28_x86_64 --dest "$download" "pyarrow==$version"
fi
echo "$sha256  $file" | sha256sum --check --status || {
  echo "$file: checksum differs from the pinned one ($sha256); delete it and run again" >&2; exit 65; }
rm -rf "$partial"
python3 -m zipfile -e "$file" "$partial"
# Only what is compiled and linked against stays: headers, libarrow, libparquet.
find "$partial/pyarrow" -mindepth 1 -maxdepth 1 ! -name include ! -name 'libarrow.so*' ! -name 'libparquet.so*' ! -name 'libarrow_python*' \
  -exec rm -rf {} +
rm -rf "$partial"/pyarrow/libarrow_python* "$target"
mv "$partial" "$target"
rm -f "$file"
echo "== Arrow $version is in $target; build again to get libmm_parquet.so" >&2
