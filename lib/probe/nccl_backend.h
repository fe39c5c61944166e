#pragma once
#include <memory>
#include <string>

#include "lib/probe/collective_backend.h"

namespace mm::probe {

struct NcclOptions {
  std::string nccl_library = "libnccl.so.2";
  std::string cudart_library;  ///< empty: libcudart.so.13, .12, in this order
  int device = 0;              ///< this rank's GPU
  int rank = 0, world = 1;     ///< within the group
  double timeout_s = 60;       ///< of each call; then the communicator is aborted
};

/// NCCL and the CUDA runtime, loaded by dlopen: buffers on the GPU, one stream.
class NcclLibraries;
class NcclBackend final : public CollectiveBackend {
 public:
  /// Loads the libraries and takes the device. Throws DeviceError naming what is missing.
  explicit NcclBackend(const NcclOptions& options);
  ~NcclBackend() override;

  /// The group's name, made by its first rank and given to `connect` on all of them.
  std::string unique_id() const;
  /// Collective.
  void connect(const std::string& unique_id);

  std::string name() const override { return "nccl"; }
  std::string version() const override;
  std::string device() const override;
  bool can_in_place(Collective collective) const override;
  void reserve(size_t count, int world) override;
  void put(const CollectiveCall& call, std::span<const float> input) override;
  void run(const CollectiveCall& call, int times) override;
  void get(const CollectiveCall& call, std::span<float> output) override;

 private:
  void run_once(const CollectiveCall& call);
  void wait(const char* what, double timeout_s);
  float* input(const CollectiveCall& call) const;
  float* output(const CollectiveCall& call) const;
  void check(int code, const char* what) const;
  void check_cuda(int code, const char* what) const;

  NcclOptions options_;
  std::unique_ptr<NcclLibraries> libraries_;
  void* comm_ = nullptr;
  void* stream_ = nullptr;
  float* send_ = nullptr;
  float* receive_ = nullptr;
  size_t capacity_ = 0;
};

}  // namespace mm::probe
