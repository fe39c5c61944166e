#pragma once
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace mm::text {

/// Lends working room to whoever calls: one lock per loan, as many objects as there are callers at
/// one time. Thread-safe.
template <typename T>
class ScratchPool {
 public:
  /// Gives the object back when it goes.
  class Loan {
   public:
    Loan(ScratchPool& pool, std::unique_ptr<T> object) : pool_(pool), object_(std::move(object)) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() {
      const std::lock_guard lock(pool_.mutex_);
      pool_.free_.push_back(std::move(object_));
    }
    T& operator*() { return *object_; }
    T* operator->() { return object_.get(); }

   private:
    ScratchPool& pool_;
    std::unique_ptr<T> object_;
  };

  Loan borrow() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return Loan(*this, std::make_unique<T>());
    auto object = std::move(free_.back());
    free_.pop_back();
    return Loan(*this, std::move(object));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace mm::text
