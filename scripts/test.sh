#!/usr/bin/env bash
# Sets up as quickstart.sh does, then runs all tests.
#
#   scripts/test.sh [--long] [ctest arguments]
#
# --long  also what takes hours: three seeds of the quick start with their scores, kill campaigns, long fuzzing.
# The LibTorch-free modules are built and tested a second time under address and undefined-behaviour sanitizers.
set -euo pipefail
{ # read as a whole before it runs, so that a checkout in the meantime changes nothing
cd "$(dirname "${BASH_SOURCE[0]}")/.."

long=0
if [ "${1:-}" = --long ]; then long=1; shift; fi
build=${MM_BUILD_DIR:-build}
export LSAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1

# The LibTorch-free modules, by the names of their tests.
sanitized="base image text kernels data ckpt health probe run_core run_import score fixtures sources"

export MM_FOR_TESTS=1
scripts/bootstrap.sh
MM_BUILD_DIR=$build-sanitize MM_CMAKE_ARGS="-DMM_TORCH=OFF -DMM_CUDA=OFF -DMM_SANITIZE=address,undefined" \
  MM_TARGETS=$(printf 'mm_test_%s ' $sanitized) scripts/bootstrap.sh

status=0
ctest --test-dir "$build-sanitize" --output-on-failure --no-tests=error -j "$(nproc)" -R "^mm_test_(${sanitized// /|}):" || status=$?
if [ "$long" = 1 ]; then
  MM_LONG=1 scripts/long-tests.sh || status=$?
fi
# Last, so that the closing line is that of the whole suite.
ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$(nproc)" "$@" || status=$?
exit "$status"
}
