#!/usr/bin/env bash
# Builds the CUDA twins of the fused ops and tests them on this machine's GPU against their double references, one line a kernel: error, tolerance,
# and the rate as a share of what a copy moves (or GFLOP/s). Needs nvcc (on PATH, or CUDACXX) and no LibTorch.
#
#   scripts/device-check.sh
#
# Exit code: 0 all within tolerance, 1 some outside, 69 the device failed, 77 no GPU or no nvcc here, so nothing was checked.
# MM_BUILD_DIR: build folder (build-device).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

nothing() { echo "device check: $1; nothing was checked"; exit 77; }

if ! nvidia-smi -L >/dev/null 2>&1; then nothing "no GPU (nvidia-smi lists none)"; fi
if [ -z "${CUDACXX:-}" ] && ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then export CUDACXX=/usr/local/cuda/bin/nvcc; fi
if [ -z "${CUDACXX:-}" ] && ! command -v nvcc >/dev/null; then nothing "a GPU but no nvcc (put it on PATH or set CUDACXX)"; fi

build=${MM_BUILD_DIR:-build-device}
cmake -S . -B "$build" -G Ninja -DMM_TORCH=OFF -DMM_CUDA=ON >/dev/null
cmake --build "$build" --target mm_device_check >/dev/null
exec "$build/bin/mm_device_check"
