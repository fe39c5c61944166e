#pragma once
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/data/sample.h"

namespace mm::data {

/// Lends TextUnpackers to threads; holds as many as were lent at once. Thread-safe.
class UnpackerPool {
 public:
  /// Gives its unpacker back when it goes. The pool must outlive it.
  class Loan {
   public:
    Loan(UnpackerPool& pool, std::unique_ptr<TextUnpacker> unpacker)
        : pool_(pool), unpacker_(std::move(unpacker)) {}
    Loan(const Loan&) = delete;
    ~Loan() {
      const std::scoped_lock lock(pool_.mutex_);
      pool_.idle_.push_back(std::move(unpacker_));
    }
    TextUnpacker& operator*() { return *unpacker_; }

   private:
    UnpackerPool& pool_;
    std::unique_ptr<TextUnpacker> unpacker_;
  };

  Loan lend() {
    std::unique_ptr<TextUnpacker> unpacker;
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        unpacker = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!unpacker) unpacker = std::make_unique<TextUnpacker>();
    return {*this, std::move(unpacker)};
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<TextUnpacker>> idle_;
};

}  // namespace mm::data
