#!/usr/bin/env bash
# From a fresh Debian 12 machine to a small LLaVA that names pictures it has never seen.
#
#   scripts/quickstart.sh [--short] [--seed N] [--ranks N]
#
# Installs what is missing, builds, fetches real pictures with names (Debian's ruby-tanuki-emoji), packs them, trains on 2 ranks in three
# stages, and ends with a table of held-out pictures and runs/quickstart/report.html. Run again, it redoes only what is missing.
# --short proves the path in under a minute (few steps, no score to speak of). Environment: see scripts/bootstrap.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

short=0 seed=1 ranks=2
while [ $# -gt 0 ]; do
  case $1 in
    --short) short=1 ;;
    --seed) seed=${2:?--seed needs a number}; shift ;;
    --ranks) ranks=${2:?--ranks needs a number}; shift ;;
    -h|--help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "quickstart.sh: unknown argument $1 (expected --short, --seed N, --ranks N)" >&2; exit 2 ;;
  esac
  shift
done

[ -n "${MM_SKIP_BUILD:-}" ] || scripts/bootstrap.sh
bin=${MM_BUILD_DIR:-build}/bin
work=${MM_QUICKSTART_DIR:-runs/quickstart-data}
run=${MM_QUICKSTART_RUN:-runs/quickstart}
[ "$short" = 0 ] || run=$run-short
[ "$seed" = 1 ] || run=$run-seed$seed
say() { printf '== %s\n' "$*" >&2; }
mkdir -p "$work" "$(dirname "$run")"

# Pictures and names: one Debian package, checked, unpacked without installing it.
package=ruby-tanuki-emoji version=0.6.0-2 sha256=00828824084225f7f70e3e6aa1147468bac84d58a8252281693a28589633d410
if [ ! -e "$work/pictures/.complete" ]; then
  say "fetching $package $version"
  deb=${package}_${version}_all.deb
  rm -rf "$work/pictures"
  mkdir -p "$work/pictures"
  if ! (cd "$work" && { [ -e "$deb" ] || apt-get download -qq "$package=$version" 2>/dev/null \
        || { { [ "$(id -u)" != 0 ] || apt-get update -qq; } && apt-get download -qq "$package=$version"; }; }); then
    echo "quickstart.sh: cannot fetch $package $version; check apt's sources, or put $deb into $work" >&2; exit 69
  fi
  echo "$sha256  $work/$deb" | sha256sum --check --status || { echo "$work/$deb: checksum differs; delete it and run again" >&2; exit 65; }
  dpkg-deb -x "$work/$deb" "$work/pictures"
  touch "$work/pictures/.complete"
fi
started=$(date +%s)
[ -e "$work/names.txt" ] || "$bin/emoji_jsonl" "$work/pictures" "$work"
if [ ! -e "$work/tokenizer.model" ]; then
  say "training a SentencePiece tokenizer on the training names"
  spm_train --input="$work/names.txt" --model_prefix="$work/tokenizer.partial" --vocab_size=1000 --model_type=bpe \
    --character_coverage=1.0 --hard_vocab_limit=false --normalization_rule_name=identity --minloglevel=2 --num_threads=2 >&2
  mv "$work/tokenizer.partial.model" "$work/tokenizer.model"
  rm -f "$work/tokenizer.partial.vocab"
fi

say "packing"
pack() { "$bin/mmshard" pack --quiet --tokenizer "$work/tokenizer.model" --template plain_eos "$@" >&2; }
pictures=(--image-root "$work/pictures" --image-side 72 --patch 9)
pack "$work/train.jsonl" --out "$work/train" "${pictures[@]}"
pack "$work/heldout.jsonl" --out "$work/heldout" "${pictures[@]}"
pack "$work/names.jsonl" --out "$work/names" --text-only

say "training on $ranks ranks"
settings=(--set "run.seed=$seed")
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
