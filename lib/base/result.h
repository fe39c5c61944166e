#pragma once
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace mm {

/// The everyday failure: expected, counted, named, not thrown. `kind` is a stable word for ledgers
/// ("truncated", "too_large"), `message` a line for people.
struct Failure {
  std::string kind;
  std::string message;
};

/// A value or a Failure. For what callers handle as a matter of course (a bad picture, a cache
/// miss); throw for the rest.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Failure failure)
      : state_(std::in_place_index<1>, std::move(failure)) {
  }  // NOLINT(google-explicit-constructor)
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Failure& failure() const { return std::get<1>(state_); }

 private:
  std::variant<T, Failure> state_;
};

}  // namespace mm
