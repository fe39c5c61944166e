#pragma once

/// Marks per-element arithmetic that the CPU and the CUDA twin share.
#ifdef __CUDACC__
#define MM_HOST_DEVICE __host__ __device__
#else
#define MM_HOST_DEVICE
#endif

/// One binary, three instruction sets, chosen when the program is loaded. Files that use it are
/// compiled with -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math, so that all sets give
/// the same bits and bounds do not become branches.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define MM_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MM_CLONES
#endif
