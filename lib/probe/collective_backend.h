#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "lib/probe/bus_bandwidth.h"

namespace mm::probe {

/// One collective over fp32 numbers. `count` is S / 4: the elements of a rank's larger buffer, a
/// multiple of the world size.
struct CollectiveCall {
  Collective collective = Collective::kAllReduce;
  size_t count = 0;
  bool in_place = false;
  int root = 0;  ///< of broadcast and reduce
};

/// Elements that a rank sends and receives.
size_t input_count(const CollectiveCall& call, int world);
size_t output_count(const CollectiveCall& call, int world);

/// A library that moves buffers between ranks. Every call is collective; one thread. Throws
/// CommError or DeviceError.
class CollectiveBackend {
 public:
  virtual ~CollectiveBackend() = default;
  virtual std::string name() const = 0;     ///< "gloo", "nccl"
  virtual std::string version() const = 0;  ///< "2.27.5"; empty if the library has none
  virtual std::string device() const = 0;   ///< what rank's buffers lie on
  virtual bool can_in_place(Collective collective) const = 0;
  /// Allocates for calls up to `count` elements.
  virtual void reserve(size_t count, int world) = 0;
  /// Puts `input` where `call` takes it from, and clears where it puts the result.
  virtual void put(const CollectiveCall& call, std::span<const float> input) = 0;
  /// Runs it `times` times one after another and waits for the end.
  virtual void run(const CollectiveCall& call, int times) = 0;
  virtual void get(const CollectiveCall& call, std::span<float> output) = 0;
};

/// Small whole numbers, so that sums have the same bits in any order: what element `index` of
/// `rank`'s input is.
float input_value(int rank, size_t index);

/// What element `index` of `rank`'s output must be after one call; nothing where no result is
/// defined (reduce on ranks other than the root).
struct Wanted {
  bool defined = false;
  float value = 0;
};
Wanted output_value(const CollectiveCall& call, int world, int rank, size_t index);

}  // namespace mm::probe
