#!/usr/bin/env bash
# An installed tree that was moved still starts: programs find their libraries beside themselves.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${CMAKE_COMMAND:-cmake}" --install "$MM_BUILD_DIR" --prefix "$work/here" > /dev/null
mv "$work/here" "$work/there"
for tool in mmshard mmckpt mmprobe mmtrain; do
  "$work/there/bin/$tool" --help > /dev/null
done
# The engine loads: the message is about the recipe, not about a library.
message=$("$work/there/bin/mmtrain" check "$work/none.toml" 2>&1) && exit 1
case $message in *none.toml*) ;; *) echo "$message" >&2; exit 1 ;; esac
