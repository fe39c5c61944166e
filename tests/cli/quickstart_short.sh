#!/usr/bin/env bash
# scripts/quickstart.sh --short on a build that is there; a second run finds everything done.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export MM_SKIP_BUILD=1 MM_QUICKSTART_DIR=$work/data MM_QUICKSTART_RUN=$work/run
scripts/quickstart.sh --short > "$work/first.txt"
grep -q 'held-out pictures' "$work/first.txt"
grep -q '^trained ' "$work/first.txt"
grep -q '^untrained ' "$work/first.txt"
grep -q 'blank picture' "$work/first.txt"
"$MM_BUILD_DIR/bin/mmtrain" report "$work/run-short" --sheet "$work/sheet.svg" --pictures 4 > /dev/null
[ "$(grep -o '<image ' "$work/sheet.svg" | wc -l)" = 4 ] || { echo "expected 4 pictures on the sheet" >&2; exit 1; }
grep -q '<svg' "$work/run-short/report.html"
! grep -q 'https\?://' "$work/run-short/report.html"
steps=$(wc -l < "$work/run-short/metrics.jsonl")
[ "$steps" = 10 ] || { echo "expected 10 steps, found $steps" >&2; exit 1; }
before=$(cksum "$work/run-short/metrics.jsonl")
scripts/quickstart.sh --short > "$work/second.txt"
[ "$before" = "$(cksum "$work/run-short/metrics.jsonl")" ] || { echo "the second run trained again" >&2; exit 1; }
picture=$(find "$work/data/noto/pictures" -name '1f600.png' | head -n 1)
"$MM_BUILD_DIR/bin/mmtrain" caption "$picture" --from "$work/run-short" --json | grep -q '"caption"'
"$MM_BUILD_DIR/bin/mmshard" verify "$work/data/noto/train" > /dev/null
"$MM_BUILD_DIR/bin/mmckpt" verify "$work/run-short" > /dev/null
# The same for pictures that are drawn: the short run's LLaVA judges them.
scripts/quickstart.sh dit --short > "$work/dit.txt" 2> "$work/dit.log" || { cat "$work/dit.log" >&2; exit 1; }
grep -q "^drawn, another's name " "$work/dit.txt"
grep -q '^real, at this size ' "$work/dit.txt"
grep -q '^frechet ' "$work/dit.txt"
grep -q '<svg' "$work/run-short-dit/report.html"
[ -s "$work/run-short-dit/sample.png" ]
"$MM_BUILD_DIR/bin/mmckpt" verify "$work/run-short-dit" > /dev/null
