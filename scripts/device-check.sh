#!/usr/bin/env bash
# What can only be checked on a GPU, part by part:
#   kernels  builds the CUDA twins of the fused ops and tests them against their double references, one line a kernel: error, tolerance, and the
#            rate as a share of what a copy moves (or GFLOP/s). Needs nvcc (on PATH, or CUDACXX) and no LibTorch.
#   nccl     every collective of `mmprobe nccl` over NCCL, one rank a GPU, results compared, and its table. Needs libnccl.so.2 and a CUDA runtime.
#   node     `mmprobe node --full`. Its GPU part needs LibTorch with CUDA: LIBTORCH names it, or MMPROBE_ENGINE a built engine.
#
#   scripts/device-check.sh [kernels] [nccl] [node]       (all without arguments)
#
# The last lines say for each part what came of it. Exit code: 0 what was checked is good, 1 a kernel is outside its tolerance, 69 a device, a collective
# or the node is bad, 77 nothing was checked.
# MM_BUILD_DIR: build folder (build-device). MMPROBE: a built mmprobe, so that none is built. MMPROBE_NCCL, MMPROBE_CUDART: the libraries, else found.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 70

build=${MM_BUILD_DIR:-build-device}
checked=0 worst=0 summary=()

note() { summary+=("device check: $(printf '%-8s' "$1") $2"); }
skip() { note "$1" "not checked: $2"; }
# part, what is bad, exit code
bad() {
  checked=1
  note "$1" "BAD ($2)"
  if [ "$3" -gt "$worst" ]; then worst=$3; fi
}
# part, exit code of what checked it: 1 is a kernel's, all others that are not good mean the same.
done_with() {
  checked=1
  case "$2" in
    0) note "$1" good ;;
    1) bad "$1" "exit code 1" 1 ;;
    *) bad "$1" "exit code $2" 69 ;;
  esac
}
finish() {
  printf '%s\n' "${summary[@]}"
  if [ "$checked" -eq 0 ]; then echo "device check: nothing was checked"; exit 77; fi
  exit "$worst"
}

# A library by its name, where the linker, CUDA and Python packages have it.
library() {
  local found
  found=$(ldconfig -p 2>/dev/null | awk -v name="$1" 'index($1, name) == 1 { print $NF; exit }')
  if [ -z "$found" ]; then
    found=$(find ${LIBTORCH:+"$LIBTORCH"} ${LIBTORCH:+"$LIBTORCH/.."} /usr/local/cuda*/lib64 /usr/lib/python3*/ /usr/local/lib/python3* \
      -name "$1*" \( -type f -o -type l \) 2>/dev/null | sort | head -n 1)
  fi
  echo "$found"
}

built_mmprobe() {
  if [ -n "${MMPROBE:-}" ]; then echo "$MMPROBE"; return; fi
  local torch=OFF targets=(mmprobe)
  if [ -n "${LIBTORCH:-}" ] && [ -e "$LIBTORCH/lib/libtorch_cuda.so" ]; then torch=ON targets+=(mm_probe_engine); fi
  cmake -S . -B "$build-probe" -G Ninja -DMM_TORCH=$torch ${LIBTORCH:+-DLIBTORCH="$LIBTORCH"} -DMM_CUDA=OFF >/dev/null || return
  cmake --build "$build-probe" --target "${targets[@]}" >&2 || return
  echo "$build-probe/bin/mmprobe"
}

check_kernels() {
  if [ -z "${CUDACXX:-}" ] && ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then export CUDACXX=/usr/local/cuda/bin/nvcc; fi
  if [ -z "${CUDACXX:-}" ] && ! command -v nvcc >/dev/null; then skip kernels "no nvcc (put it on PATH or set CUDACXX)"; return; fi
  if ! { cmake -S . -B "$build" -G Ninja -DMM_TORCH=OFF -DMM_CUDA=ON && cmake --build "$build" --target mm_device_check; } >/dev/null; then
    bad kernels "the kernels were not built" 69
    return
  fi
  local code=0
  "$build/bin/mm_device_check" || code=$?
  if [ "$code" -eq 77 ]; then skip kernels "CUDA finds no GPU"; else done_with kernels "$code"; fi
}

check_nccl() {
  export MMPROBE_NCCL=${MMPROBE_NCCL:-$(library libnccl.so.2)} MMPROBE_CUDART=${MMPROBE_CUDART:-$(library libcudart.so.1)}
  if [ -z "$MMPROBE_NCCL" ]; then skip nccl "no libnccl.so.2 (MMPROBE_NCCL names it)"; return; fi
  if [ -z "$MMPROBE_CUDART" ]; then skip nccl "no libcudart (MMPROBE_CUDART names it)"; return; fi
  local bad=0 code
  for collective in all_reduce all_gather reduce_scatter all_to_all broadcast reduce send_receive; do
    "$mmprobe" nccl "$collective" --backend nccl --nproc "$gpus" --min-bytes 1K --max-bytes 64M --factor 16
    code=$?
    if [ "$code" -ne 0 ]; then echo "device check: $collective ended with $code" >&2; bad=69; fi
  done
  done_with nccl "$bad"
}

check_node() {
  "$mmprobe" node --full --busy-ok
  done_with node $?
}

if [ "$#" -eq 0 ]; then set -- kernels nccl node; fi
for part in "$@"; do
  case "$part" in kernels | nccl | node) ;; *) echo "device check: $part is no part; there are kernels, nccl, node" >&2; exit 2 ;; esac
done
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
if [ "${gpus:-0}" -eq 0 ]; then
  for part in "$@"; do skip "$part" "no GPU (nvidia-smi lists none)"; done
  finish
fi
mmprobe=
for part in "$@"; do
  if [ "$part" != kernels ] && [ -z "$mmprobe" ]; then
    mmprobe=$(built_mmprobe)
    if [ ! -x "$mmprobe" ]; then bad "$part" "mmprobe was not built" 69; mmprobe=; continue; fi
  fi
  "check_$part"
done
finish
