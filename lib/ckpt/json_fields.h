#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"

namespace mm::ckpt {

/// Typed access to the members of a parsed JSON object from a file: what is absent or of another
/// type throws DataError that names the place ("ckpt/manifest.json: files[3]: \"bytes\":
/// non-negative integer expected"). The document must outlive the object.
class JsonFields {
 public:
  /// Throws if `value` is no object.
  JsonFields(const Json& value, std::string where);

  bool has(std::string_view key) const;
  uint64_t u64(std::string_view key) const;
  std::string text(std::string_view key) const;
  std::vector<uint64_t> u64s(std::string_view key) const;
  const Json& array(std::string_view key) const;
  const Json& any(std::string_view key) const;
  const std::string& where() const { return where_; }
  [[noreturn]] void fail(std::string_view key, std::string_view what) const;

 private:
  const Json& value_;
  std::string where_;
};

}  // namespace mm::ckpt
