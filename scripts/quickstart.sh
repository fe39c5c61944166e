#!/usr/bin/env bash
# From a fresh Debian 12 machine to a small LLaVA that names pictures it has never seen.
#
#   scripts/quickstart.sh [dit] [--short] [--seed N] [--ranks N] [--pictures noto|tanuki]
#
# "dit" goes on from there: a small diffusion transformer learns to draw emoji from their names, and that LLaVA (trained first where it
# is not yet) says what it sees in the pictures drawn for held-out names: a table, a grid and runs/quickstart-dit/report.html. It ends with
# 1 if those names are hardly found again (recall@5 less than 10 points above another's name or above untrained weights).
#
# Installs what is missing, builds, fetches real pictures with names (the emoji of Debian's fonts-noto-color-emoji), packs them, trains
# on 2 ranks in three stages, and ends with a table of held-out pictures and runs/quickstart/report.html. Run again, it redoes only what
# is missing. --short proves the path in under a minute (few steps, no score to speak of); --pictures tanuki takes the 1,784 pictures of
# ruby-tanuki-emoji, less than half as many. Environment: see scripts/bootstrap.sh.
set -euo pipefail
{ # read as a whole before it runs, so that a checkout in the meantime changes nothing
cd "$(dirname "${BASH_SOURCE[0]}")/.."

again=() dit=0 short=0 seed=1 ranks=2 pictures=noto
for word in "$@"; do [ "$word" = dit ] || again+=("$word"); done
while [ $# -gt 0 ]; do
  case $1 in
    dit) dit=1 ;;
    --short) short=1 ;;
    --seed) seed=${2:?--seed needs a number}; shift ;;
    --ranks) ranks=${2:?--ranks needs a number}; shift ;;
    --pictures) pictures=${2:?--pictures needs noto or tanuki}; shift ;;
    -h|--help) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "quickstart.sh: unknown argument $1 (expected dit, --short, --seed N, --ranks N, --pictures noto|tanuki)" >&2; exit 2 ;;
  esac
  shift
done
case $pictures in noto|tanuki) ;; *) echo "quickstart.sh: --pictures $pictures: expected noto or tanuki" >&2; exit 2 ;; esac

# All but the tests, which take as long to compile as everything else.
[ -n "${MM_SKIP_BUILD:-}" ] || MM_TARGETS=${MM_TARGETS:-apps/all kernels/all lib/data/parquet/all tools/all} scripts/bootstrap.sh
bin=${MM_BUILD_DIR:-build}/bin
[ "$dit$pictures" != 1tanuki ] || { echo "quickstart.sh: dit draws the pictures of noto; leave --pictures out" >&2; exit 2; }
work=${MM_QUICKSTART_DIR:-runs/quickstart-data}/$pictures
run=${MM_QUICKSTART_RUN:-runs/quickstart}
[ "$pictures" = noto ] || run=$run-$pictures
[ "$short" = 0 ] || run=$run-short
[ "$seed" = 1 ] || run=$run-seed$seed
draw() {
  local started settings=() names=()
  [ -e "$run/eval.json" ] || { say "first the LLaVA that will judge the pictures"; MM_SKIP_BUILD=1 scripts/quickstart.sh "${again[@]}"; }
  started=$(date +%s)
  say "packing"
  "$bin/mmshard" pack --quiet "$work/train.jsonl" --image-root "$work" --tokenizer "$work/tokenizer.model" \
    --geometry buckets --buckets 24x24 --max-length 24 --out "$work/dit-train" >&2
  say "training on $ranks ranks"
  settings=(--set "run.seed=$seed" --set "stage.0.data=$(realpath "$work")/dit-train")
  [ "$short" = 0 ] || settings+=(--set stage.0.steps=3 --set stage.0.batch_pixels=4096)
  "$bin/mmtrain" launch --nproc "$ranks" -- run recipes/quickstart-dit.toml --run "$run-dit" "${settings[@]}"
  say "drawing names that were not trained on"
  [ "$short" = 0 ] || names=(--limit 6 --steps 4)
  "$bin/mmtrain" eval --from "$run-dit" --judge "$run" --data "$work/heldout" --rows 12 "${names[@]}"
  "$bin/mmtrain" sample --from "$run-dit" --prompt "cat face" "red heart" "man: dark skin tone" "green circle" --grid 4x4 --steps 25 \
    --guidance 3 >&2
  "$bin/mmtrain" report "$run-dit" >&2
  say "took $(($(date +%s) - started)) s for pack, training and table; open $run-dit/report.html and $run-dit/sample.png"
  [ "$short" = 1 ] || "$bin/check_score" "$run-dit/eval.json" drawn 10
}
say() { printf '== %s\n' "$*" >&2; }
mkdir -p "$work" "$(dirname "$run")"
if [ "$dit" = 1 ]; then draw; exit 0; fi

# Pictures with names; the row lists come last, so that they mean that all is there.
root=$work settings=()
if [ "$pictures" = noto ]; then
  scripts/fetch-deb.sh fonts-noto-color-emoji 2.042-0+deb12u1 a5ab0f69c7938423862320d9aca5dd187b3fd879d6a9a57dd52e17c3fa8d2751 "$work/packages"
  scripts/fetch-deb.sh unicode-data 15.0.0-1 5efef23bbb1c6a133ecbdd63a2cfa07159ccacf5466a49e2426101c5ecd691fc "$work/packages"
  started=$(date +%s)
  [ -e "$work/names.txt" ] || "$bin/noto_jsonl" "$work/packages/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf" \
    "$work/packages/usr/share/unicode/emoji/emoji-test.txt" "$work"
else
  scripts/fetch-deb.sh ruby-tanuki-emoji 0.6.0-2 00828824084225f7f70e3e6aa1147468bac84d58a8252281693a28589633d410 "$work/packages"
  started=$(date +%s)
  root=$work/packages
  settings=(--set stage.0.steps=60 --set stage.2.steps=2400)
  [ -e "$work/names.txt" ] || "$bin/emoji_jsonl" "$root" "$work"
fi
if [ ! -e "$work/tokenizer.model" ]; then
  say "training a SentencePiece tokenizer on the training names"
  spm_train --input="$work/names.txt" --model_prefix="$work/tokenizer.partial" --vocab_size=1000 --model_type=bpe \
    --character_coverage=1.0 --hard_vocab_limit=false --normalization_rule_name=identity --minloglevel=2 --num_threads=2 >&2
  mv "$work/tokenizer.partial.model" "$work/tokenizer.model"
  rm -f "$work/tokenizer.partial.vocab"
fi

say "packing"
pack() { "$bin/mmshard" pack --quiet --tokenizer "$work/tokenizer.model" --template plain_eos "$@" >&2; }
geometry=(--image-root "$root" --image-side 72 --patch 9)
pack "$work/train.jsonl" --out "$work/train" "${geometry[@]}"
pack "$work/heldout.jsonl" --out "$work/heldout" "${geometry[@]}"
pack "$work/names.jsonl" --out "$work/names" --text-only

say "training on $ranks ranks"
settings+=(--set "run.seed=$seed")
for stage in 0 1 2; do
  if [ "$stage" = 0 ]; then set_name=names; else set_name=train; fi
  settings+=(--set "stage.$stage.data=$(realpath "$work")/$set_name")
done
[ "$short" = 0 ] || settings+=(--set stage.0.steps=4 --set stage.1.steps=3 --set stage.2.steps=3)
"$bin/mmtrain" launch --nproc "$ranks" -- run recipes/quickstart-llava.toml --run "$run" "${settings[@]}"

say "naming pictures that were not trained on"
limit=(); [ "$short" = 0 ] || limit=(--limit 8)
"$bin/mmtrain" eval --from "$run" --data "$work/heldout" "${limit[@]}"
"$bin/mmtrain" report "$run" >&2
say "took $(($(date +%s) - started)) s for pack, training and table; open $run/report.html"
exit 0
}
