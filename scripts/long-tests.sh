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
