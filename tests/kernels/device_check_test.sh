#!/usr/bin/env bash
# scripts/device-check.sh on a machine whose nvidia-smi finds nothing: lines that say so, exit code 77, nothing built.
set -uo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$(command -v false)" "$work/nvidia-smi"
said=$(PATH="$work:$PATH" MM_BUILD_DIR="$work/build" "$(dirname "$0")/../../scripts/device-check.sh")
code=$?
[ "$code" = 77 ] || { echo "exit code $code, expected 77"; exit 1; }
[ "${said##*$'\n'}" = "device check: nothing was checked" ] || { echo "said: $said"; exit 1; }
[ ! -e "$work/build" ] || { echo "it built something"; exit 1; }
