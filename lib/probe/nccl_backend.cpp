#include "lib/probe/nccl_backend.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/health/nccl_version.h"
#include "lib/health/nvml_library.h"

namespace mm::probe {
namespace {

constexpr int kFloat = 7, kSum = 0;  // ncclFloat32, ncclSum
constexpr int kToDevice = 1, kToHost = 2;
constexpr int kNotReady = 600;  // cudaErrorNotReady
constexpr int kGetUniqueIdBytes = 128;

struct UniqueId {
  char bytes[kGetUniqueIdBytes] = {};
};
using Comm = void*;
using Stream = void*;

std::string first_library(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  for (const char* name : {"libcudart.so.13", "libcudart.so.12"})
    if (health::NvmlLibrary(name)) return name;
  return "libcudart.so.12";
}

}  // namespace

class NcclLibraries {
 public:
  NcclLibraries(const std::string& nccl, const std::string& cudart)
      : nccl_(nccl), cuda_(cudart), nccl_name_(nccl), cuda_name_(cudart) {
    if (!nccl_) throw DeviceError("NCCL: {} not found; MMPROBE_NCCL names it", nccl);
    if (!cuda_) throw DeviceError("CUDA runtime: {} not found; MMPROBE_CUDART names it", cudart);
    load(nccl_, get_version, "ncclGetVersion");
    load(nccl_, get_unique_id, "ncclGetUniqueId");
    load(nccl_, init_rank, "ncclCommInitRank");
    load(nccl_, destroy, "ncclCommDestroy");
    load(nccl_, abort, "ncclCommAbort");
    load(nccl_, async_error, "ncclCommGetAsyncError");
    load(nccl_, error_text, "ncclGetErrorString");
    load(nccl_, group_start, "ncclGroupStart");
    load(nccl_, group_end, "ncclGroupEnd");
    load(nccl_, all_reduce, "ncclAllReduce");
    load(nccl_, all_gather, "ncclAllGather");
    load(nccl_, reduce_scatter, "ncclReduceScatter");
    load(nccl_, broadcast, "ncclBroadcast");
    load(nccl_, reduce, "ncclReduce");
    load(nccl_, send, "ncclSend");
    load(nccl_, receive, "ncclRecv");
    load(cuda_, set_device, "cudaSetDevice");
    load(cuda_, allocate, "cudaMalloc");
    load(cuda_, release, "cudaFree");
    load(cuda_, copy, "cudaMemcpy");
    load(cuda_, fill, "cudaMemset");
    load(cuda_, new_stream, "cudaStreamCreate");
    load(cuda_, end_stream, "cudaStreamDestroy");
    load(cuda_, query, "cudaStreamQuery");
    load(cuda_, cuda_text, "cudaGetErrorString");
  }

 private:
  template <typename Function>
  void load(const health::NvmlLibrary& library, Function*& function, const char* symbol) {
    function = library.find<Function>(symbol);
    if (function == nullptr)
      throw DeviceError("{} lacks {}", &library == &nccl_ ? nccl_name_ : cuda_name_, symbol);
  }
  health::NvmlLibrary nccl_, cuda_;
  std::string nccl_name_, cuda_name_;

 public:
  int (*get_version)(int*);
  int (*get_unique_id)(UniqueId*);
  int (*init_rank)(Comm*, int, UniqueId, int);
  int (*destroy)(Comm);
  int (*abort)(Comm);
  int (*async_error)(Comm, int*);
  const char* (*error_text)(int);
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void*, void*, size_t, int, int, Comm, Stream);
  int (*all_gather)(const void*, void*, size_t, int, Comm, Stream);
  int (*reduce_scatter)(const void*, void*, size_t, int, int, Comm, Stream);
  int (*broadcast)(const void*, void*, size_t, int, int, Comm, Stream);
  int (*reduce)(const void*, void*, size_t, int, int, int, Comm, Stream);
  int (*send)(const void*, size_t, int, int, Comm, Stream);
  int (*receive)(void*, size_t, int, int, Comm, Stream);
  int (*set_device)(int);
  int (*allocate)(void**, size_t);
  int (*release)(void*);
  int (*copy)(void*, const void*, size_t, int);
  int (*fill)(void*, int, size_t);
  int (*new_stream)(Stream*);
  int (*end_stream)(Stream);
  int (*query)(Stream);
  const char* (*cuda_text)(int);
};

NcclBackend::NcclBackend(const NcclOptions& options)
    : options_(options),
      libraries_(std::make_unique<NcclLibraries>(options.nccl_library,
                                                 first_library(options.cudart_library))) {
  check_cuda(libraries_->set_device(options.device), "cudaSetDevice");
  check_cuda(libraries_->new_stream(&stream_), "cudaStreamCreate");
}

NcclBackend::~NcclBackend() {
  if (comm_ != nullptr) libraries_->destroy(comm_);
  if (send_ != nullptr) libraries_->release(send_);
  if (receive_ != nullptr) libraries_->release(receive_);
  if (stream_ != nullptr) libraries_->end_stream(stream_);
}

void NcclBackend::check(int code, const char* what) const {
  if (code != 0)
    throw CommError("NCCL: {} on rank {}: {}; NCCL_DEBUG=INFO says more", what, options_.rank,
                    libraries_->error_text(code));
}

void NcclBackend::check_cuda(int code, const char* what) const {
  if (code != 0)
    throw DeviceError("CUDA device {}: {}: {}", options_.device, what, libraries_->cuda_text(code));
}

std::string NcclBackend::unique_id() const {
  UniqueId id;
  check(libraries_->get_unique_id(&id), "ncclGetUniqueId");
  std::string hex;
  for (const char byte : id.bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

void NcclBackend::connect(const std::string& hex) {
  UniqueId id;
  if (hex.size() != 2 * sizeof(id.bytes)) throw CommError("NCCL: an id of {} digits", hex.size());
  for (size_t i = 0; i < sizeof(id.bytes); ++i)
    id.bytes[i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  check(libraries_->init_rank(&comm_, options_.world, id, options_.rank), "ncclCommInitRank");
}

std::string NcclBackend::version() const {
  int version = 0;
  check(libraries_->get_version(&version), "ncclGetVersion");
  return health::nccl_version_text(version);
}

std::string NcclBackend::device() const { return fmt::format("GPU {}", options_.device); }

bool NcclBackend::can_in_place(Collective collective) const {
  return collective != Collective::kAllToAll && collective != Collective::kSendReceive;
}

void NcclBackend::reserve(size_t count, int) {
  if (count <= capacity_) return;
  const size_t bytes = count * sizeof(float);
  void* memory = nullptr;
  check_cuda(libraries_->allocate(&memory, bytes), "cudaMalloc");
  send_ = static_cast<float*>(memory);
  check_cuda(libraries_->allocate(&memory, bytes), "cudaMalloc");
  receive_ = static_cast<float*>(memory);
  capacity_ = count;
}

// In place: gather sends from its own part of the result, scatter leaves its part where it lies.
float* NcclBackend::input(const CollectiveCall& call) const {
  if (!call.in_place) return send_;
  if (call.collective == Collective::kAllGather)
    return receive_ +
           static_cast<size_t>(options_.rank) * call.count / static_cast<size_t>(options_.world);
  return receive_;
}

float* NcclBackend::output(const CollectiveCall& call) const {
  if (call.in_place && call.collective == Collective::kReduceScatter)
    return receive_ +
           static_cast<size_t>(options_.rank) * call.count / static_cast<size_t>(options_.world);
  return receive_;
}

void NcclBackend::put(const CollectiveCall& call, std::span<const float> values) {
  check_cuda(libraries_->fill(receive_, 0, call.count * sizeof(float)), "cudaMemset");
  check_cuda(libraries_->copy(input(call), values.data(), values.size_bytes(), kToDevice),
             "cudaMemcpy");
}

void NcclBackend::get(const CollectiveCall& call, std::span<float> values) {
  check_cuda(libraries_->copy(values.data(), output(call), values.size_bytes(), kToHost),
             "cudaMemcpy");
}

void NcclBackend::run(const CollectiveCall& call, int times) {
  for (int i = 0; i < times; ++i) run_once(call);
  wait(word(call.collective), options_.timeout_s * std::max(times, 1));
}

// By asking, since a lost peer would let a blocking wait stand for ever.
void NcclBackend::wait(const char* what, double timeout_s) {
  const double until_s = system_clock().monotonic_s() + timeout_s;
  while (true) {
    const int code = libraries_->query(stream_);
    if (code == 0) return;
    int lost = 0;
    const int asked = libraries_->async_error(comm_, &lost);
    const bool failed = asked != 0 || lost != 0;
    const bool late = system_clock().monotonic_s() >= until_s;
    if (failed || late) libraries_->abort(std::exchange(comm_, nullptr));
    if (failed) check(asked != 0 ? asked : lost, what);
    if (late)
      throw CommError("NCCL: {} on rank {}: no end within {} s", what, options_.rank, timeout_s);
    if (code != kNotReady) check_cuda(code, what);
    ::sched_yield();
  }
}

void NcclBackend::run_once(const CollectiveCall& call) {
  NcclLibraries& l = *libraries_;
  const float* in = input(call);
  float* out = output(call);
  const int n = options_.world, rank = options_.rank;
  const size_t part = call.count / static_cast<size_t>(n);
  switch (call.collective) {
    case Collective::kAllReduce:
      return check(l.all_reduce(in, out, call.count, kFloat, kSum, comm_, stream_), "all_reduce");
    case Collective::kAllGather:
      return check(l.all_gather(in, out, part, kFloat, comm_, stream_), "all_gather");
    case Collective::kReduceScatter:
      return check(l.reduce_scatter(in, out, part, kFloat, kSum, comm_, stream_), "reduce_scatter");
    case Collective::kBroadcast:
      return check(l.broadcast(in, out, call.count, kFloat, call.root, comm_, stream_),
                   "broadcast");
    case Collective::kReduce:
      return check(l.reduce(in, out, call.count, kFloat, kSum, call.root, comm_, stream_),
                   "reduce");
    case Collective::kAllToAll:
      check(l.group_start(), "group");
      for (int peer = 0; peer < n; ++peer) {
        const size_t at = static_cast<size_t>(peer) * part;
        check(l.send(in + at, part, kFloat, peer, comm_, stream_), "send");
        check(l.receive(out + at, part, kFloat, peer, comm_, stream_), "receive");
      }
      return check(l.group_end(), "all_to_all");
    case Collective::kSendReceive:
      break;
  }
  check(l.group_start(), "group");
  check(l.send(in, call.count, kFloat, (rank + 1) % n, comm_, stream_), "send");
  check(l.receive(out, call.count, kFloat, (rank + n - 1) % n, comm_, stream_), "receive");
  check(l.group_end(), "send_receive");
}

}  // namespace mm::probe
