#pragma once
#include <string>
#include <vector>

#include "lib/base/json.h"

namespace mm::oracle {

/// One quantity of a folder and what became of it.
struct Quantity {
  enum class Status { kWithin, kOutside, kNotBuilt, kUnknown };
  std::string name;
  Status status = Status::kWithin;
  double error = 0;  ///< in the measure's unit; 0 or 1 for exact comparisons
  double tolerance = 0;
  std::string measure;  ///< "rel", "abs", "max", "exact"; empty where nothing was compared
  std::string note;     ///< what differs, for exact comparisons that do
};

/// Collects the quantities of one run. Not thread-safe.
class Report {
 public:
  /// Within if error <= tolerance; NaN is outside.
  void number(const std::string& name, double error, double tolerance, const std::string& measure);
  void exact(const std::string& name, bool equal, const std::string& note_if_not);
  void not_built(const std::string& name);
  /// Neither checked nor an input nor known to come later.
  void unknown(const std::string& name);

  const std::vector<Quantity>& quantities() const { return quantities_; }
  int count(Quantity::Status status) const;
  /// Nothing outside, nothing unknown.
  bool passed() const;

  /// A line a quantity, then the sums.
  std::string table(const std::string& folder, const std::string& kind) const;
  /// One object: schema, folder, kind, passed, counts, quantities.
  Json json(const std::string& folder, const std::string& kind) const;

 private:
  std::vector<Quantity> quantities_;
};

}  // namespace mm::oracle
