#pragma once
#include <chrono>

// LibTorch's wheels contain Gloo but not its headers. ProcessGroupGloo.hpp holds these types by
// pointer only, so names suffice; nothing here may be instantiated or derived from in our code.
namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};
}  // namespace transport

}  // namespace gloo
