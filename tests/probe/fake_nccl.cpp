// NCCL and the CUDA runtime for one rank: device memory is host memory, and every collective of one
// rank copies. MM_FAKE_NCCL_FAIL names a function that fails, or "never" or "async".
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

const void* pending_send = nullptr;

int result(const char* function) {
  const char* failing = std::getenv("MM_FAKE_NCCL_FAIL");
  return failing != nullptr && std::strcmp(failing, function) == 0 ? 3 : 0;
}
int copy(const char* function, const void* from, void* to, size_t count) {
  if (from != to) std::memcpy(to, from, count * sizeof(float));
  return result(function);
}

struct Id {
  char bytes[128];
};

}  // namespace

extern "C" {
int ncclGetVersion(int* version) {
  *version = 22705;
  return 0;
}
int ncclGetUniqueId(Id* id) {
  std::memset(id->bytes, 7, sizeof(id->bytes));
  return 0;
}
int ncclCommInitRank(void** comm, int, Id id, int) {
  *comm = comm;
  return id.bytes[127] == 7 ? result("ncclCommInitRank") : 5;
}
int ncclCommDestroy(void*) { return 0; }
int ncclCommAbort(void*) { return 0; }
int ncclCommGetAsyncError(void*, int* error) {
  *error = result("async");
  return result("ncclCommGetAsyncError");
}
const char* ncclGetErrorString(int) { return "internal error"; }
int ncclGroupStart() { return 0; }
int ncclGroupEnd() { return 0; }
int ncclAllReduce(const void* in, void* out, size_t n, int, int, void*, void*) {
  return copy("ncclAllReduce", in, out, n);
}
int ncclAllGather(const void* in, void* out, size_t n, int, void*, void*) {
  return copy("ncclAllGather", in, out, n);
}
int ncclReduceScatter(const void* in, void* out, size_t n, int, int, void*, void*) {
  return copy("ncclReduceScatter", in, out, n);
}
int ncclBroadcast(const void* in, void* out, size_t n, int, int, void*, void*) {
  return copy("ncclBroadcast", in, out, n);
}
int ncclReduce(const void* in, void* out, size_t n, int, int, int, void*, void*) {
  return copy("ncclReduce", in, out, n);
}
int ncclSend(const void* in, size_t, int, int, void*, void*) {
  pending_send = in;
  return 0;
}
int ncclRecv(void* out, size_t n, int, int, void*, void*) {
  return copy("ncclRecv", pending_send, out, n);
}
int cudaSetDevice(int device) { return device == 0 ? 0 : 101; }
int cudaMalloc(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return 0;
}
int cudaFree(void* memory) {
  std::free(memory);
  return 0;
}
int cudaMemcpy(void* to, const void* from, size_t bytes, int) {
  std::memcpy(to, from, bytes);
  return 0;
}
int cudaMemset(void* memory, int value, size_t bytes) {
  std::memset(memory, value, bytes);
  return 0;
}
int cudaStreamCreate(void** stream) {
  *stream = stream;
  return 0;
}
int cudaStreamDestroy(void*) { return 0; }
// "never": the stream does not end.
int cudaStreamQuery(void*) {
  for (const char* fault : {"never", "async", "ncclCommGetAsyncError"})
    if (result(fault) != 0) return 600;
  return 0;
}
const char* cudaGetErrorString(int) { return "invalid device ordinal"; }
}
