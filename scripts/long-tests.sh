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
