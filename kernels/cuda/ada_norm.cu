#include "kernels/cuda/ada_norm.cuh"

namespace mm::kernels {
namespace {

struct Grid {
  unsigned rows, columns, blocks;
};
Grid grid_of(const PictureRows& s) {
  return {static_cast<unsigned>((s.pictures * s.rows + kAdaNormRowsPerBlock - 1) / kAdaNormRowsPerBlock),
          static_cast<unsigned>((s.cols + kBlockThreads - 1) / kBlockThreads), static_cast<unsigned>(s.pictures * ada_norm_blocks(s))};
}

bool empty(const PictureRows& s) { return s.pictures <= 0 || s.rows <= 0 || s.cols <= 0; }

template <typename T>
int norm_forward(const PictureRows& s, const ModulatedNormForward<T>& p, void* stream) {
  if (empty(s)) return 0;
  modulated_norm_forward_kernel<T>
      <<<grid_of(s).rows, kAdaNormRowsPerBlock * kWarp, 0, static_cast<cudaStream_t>(stream)>>>(s, p);
  return static_cast<int>(cudaGetLastError());
}

template <typename T>
int norm_backward(const PictureRows& s, const ModulatedNormBackward<T>& p, float* partial, void* stream) {
  if (empty(s)) return 0;
  const auto queue = static_cast<cudaStream_t>(stream);
  const Grid grid = grid_of(s);
  const dim3 sums(grid.columns, static_cast<unsigned>(s.pictures));
  float* scales = partial + static_cast<int64_t>(grid.blocks) * s.cols;
  modulated_norm_partial_kernel<T><<<dim3(grid.columns, grid.blocks), kBlockThreads, 0, queue>>>(s, p, partial, scales);
  modulated_norm_input_kernel<T><<<grid.rows, kAdaNormRowsPerBlock * kWarp, 0, queue>>>(s, p);
  picture_sum_kernel<<<sums, kBlockThreads, 0, queue>>>(s, partial, p.dshift);
  picture_sum_kernel<<<sums, kBlockThreads, 0, queue>>>(s, scales, p.dscale);
  return static_cast<int>(cudaGetLastError());
}

template <typename T>
int gate_forward(const PictureRows& s, const GatedAddForward<T>& p, void* stream) {
  if (empty(s)) return 0;
  gated_add_forward_kernel<T>
      <<<blocks_for(s.pictures * s.rows * s.cols), kBlockThreads, 0, static_cast<cudaStream_t>(stream)>>>(s, p);
  return static_cast<int>(cudaGetLastError());
}

template <typename T>
int gate_backward(const PictureRows& s, const GatedAddBackward<T>& p, float* partial, void* stream) {
  if (empty(s)) return 0;
  const auto queue = static_cast<cudaStream_t>(stream);
  const Grid grid = grid_of(s);
  gated_add_partial_kernel<T><<<dim3(grid.columns, grid.blocks), kBlockThreads, 0, queue>>>(s, p, partial);
  gated_add_branch_kernel<T><<<blocks_for(s.pictures * s.rows * s.cols), kBlockThreads, 0, queue>>>(s, p);
  picture_sum_kernel<<<dim3(grid.columns, static_cast<unsigned>(s.pictures)), kBlockThreads, 0, queue>>>(s, partial, p.dgate);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

extern "C" int mm_modulated_norm_forward_cuda_f32(const PictureRows& s, const ModulatedNormForward<float>& p, void* stream) {
  return norm_forward(s, p, stream);
}
extern "C" int mm_modulated_norm_forward_cuda_bf16(const PictureRows& s, const ModulatedNormForward<Bf16>& p, void* stream) {
  return norm_forward(s, p, stream);
}
extern "C" int mm_modulated_norm_backward_cuda_f32(const PictureRows& s, const ModulatedNormBackward<float>& p, float* partial,
                                                   void* stream) {
  return norm_backward(s, p, partial, stream);
}
extern "C" int mm_modulated_norm_backward_cuda_bf16(const PictureRows& s, const ModulatedNormBackward<Bf16>& p, float* partial,
                                                    void* stream) {
  return norm_backward(s, p, partial, stream);
}
extern "C" int mm_gated_add_forward_cuda_f32(const PictureRows& s, const GatedAddForward<float>& p, void* stream) {
  return gate_forward(s, p, stream);
}
extern "C" int mm_gated_add_forward_cuda_bf16(const PictureRows& s, const GatedAddForward<Bf16>& p, void* stream) {
  return gate_forward(s, p, stream);
}
extern "C" int mm_gated_add_backward_cuda_f32(const PictureRows& s, const GatedAddBackward<float>& p, float* partial, void* stream) {
  return gate_backward(s, p, partial, stream);
}
extern "C" int mm_gated_add_backward_cuda_bf16(const PictureRows& s, const GatedAddBackward<Bf16>& p, float* partial, void* stream) {
  return gate_backward(s, p, partial, stream);
}

}  // namespace mm::kernels
