#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mm::bench {

/// Processor seconds of this process, all threads: what a shared machine does not distort.
double processor_s();

/// Resident bytes of this process now, and the most since it began.
int64_t resident_bytes();
int64_t peak_resident_bytes();

/// Multiply-adds of a 768 x 768 product by LibTorch in fp32 or bf16, as FLOP per processor second
/// (2 a multiply-add); bf16 = the CPU's own way. Takes about `seconds` of processor time.
double gemm_rate(bool bf16, double seconds);

/// The middle one; the upper of two. `values` is not empty.
double median(std::vector<double> values);

/// LibTorch as benches have it: so many threads, no denormals.
void start_tensors(int threads);

/// Processor, its vector and matrix units, LibTorch's version and threads, in one line.
std::string hardware();

}  // namespace mm::bench
