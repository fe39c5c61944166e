#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace mm::dist {

/// A set of ranks that communicate. All calls are collective: every rank of the group makes the
/// same calls in the same order with equal sizes. They block the calling thread until done or until
/// the group's deadline, then throw CommError naming group, operation and sequence number; after an
/// error the group is unusable. One thread at a time per group (the executor gives each group its
/// own queue). Sums are taken in rank order, so bits depend on neither bucket size nor timing. Any
/// float dtype that the backend has.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;

  /// In place; `tensor` contiguous.
  virtual void all_reduce_sum(at::Tensor tensor) = 0;
  virtual void all_reduce_max(at::Tensor tensor) = 0;
  /// `out` [n], `in` [size * n]: rank r gets the sum of everybody's r-th part.
  virtual void reduce_scatter_sum(at::Tensor out, const at::Tensor& in) = 0;
  /// `out` [size * n], `in` [n].
  virtual void all_gather(at::Tensor out, const at::Tensor& in) = 0;
  virtual void broadcast(at::Tensor tensor, int root) = 0;
  /// Ragged bytes, gathered in rank order; sizes need not agree. For small control messages.
  virtual std::vector<std::string> all_gather_bytes(const std::string& bytes) = 0;
  virtual void barrier() = 0;

  /// Makes the call in flight on this rank throw CommError with `reason`, as soon as the backend
  /// can; the group is then unusable. From any thread. Destroying a group frees the peers that wait
  /// for it. Backends without waits ignore it.
  virtual void abort(const std::string& reason) { static_cast<void>(reason); }
};

}  // namespace mm::dist
