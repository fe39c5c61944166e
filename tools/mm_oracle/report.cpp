#include "tools/mm_oracle/report.h"

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"

namespace mm::oracle {
namespace {

const char* status_word(Quantity::Status status) {
  switch (status) {
    case Quantity::Status::kWithin:
      return "ok";
    case Quantity::Status::kOutside:
      return "DIFFERS";
    case Quantity::Status::kNotBuilt:
      return "not built";
    case Quantity::Status::kUnknown:
      return "UNKNOWN";
  }
  throw InternalError("quantity status {} has no word", static_cast<int>(status));
}

std::string line(const Quantity& q) {
  std::string text = fmt::format("{:<9}  {}", status_word(q.status), q.name);
  if (q.measure == "exact") {
    text += "  exact";
  } else if (!q.measure.empty()) {
    text += fmt::format("  {} {:.2e} (tolerance {:.0e})", q.measure, q.error, q.tolerance);
  }
  return q.note.empty() ? text + "\n" : text + ": " + q.note + "\n";
}

}  // namespace

void Report::number(const std::string& name, double error, double tolerance,
                    const std::string& measure) {
  const bool within = std::isfinite(error) && error <= tolerance;
  quantities_.push_back({.name = name,
                         .status = within ? Quantity::Status::kWithin : Quantity::Status::kOutside,
                         .error = error,
                         .tolerance = tolerance,
                         .measure = measure});
}

void Report::exact(const std::string& name, bool equal, const std::string& note_if_not) {
  quantities_.push_back({.name = name,
                         .status = equal ? Quantity::Status::kWithin : Quantity::Status::kOutside,
                         .error = equal ? 0.0 : 1.0,
                         .measure = "exact",
                         .note = equal ? "" : note_if_not});
}

void Report::not_built(const std::string& name) {
  quantities_.push_back({.name = name, .status = Quantity::Status::kNotBuilt});
}

void Report::unknown(const std::string& name) {
  quantities_.push_back(
      {.name = name, .status = Quantity::Status::kUnknown, .note = "no check and no entry for it"});
}

int Report::count(Quantity::Status status) const {
  return static_cast<int>(std::ranges::count(quantities_, status, &Quantity::status));
}

bool Report::passed() const {
  return count(Quantity::Status::kOutside) == 0 && count(Quantity::Status::kUnknown) == 0;
}

std::string Report::table(const std::string& folder, const std::string& kind) const {
  std::string text;
  for (const Quantity& quantity : quantities_) text += line(quantity);
  return text + fmt::format("{}: {}: {} within, {} outside, {} not built, {} unknown\n", folder,
                            kind, count(Quantity::Status::kWithin),
                            count(Quantity::Status::kOutside), count(Quantity::Status::kNotBuilt),
                            count(Quantity::Status::kUnknown));
}

Json Report::json(const std::string& folder, const std::string& kind) const {
  Json rows = Json::array();
  for (const Quantity& q : quantities_) {
    Json row = {{"name", q.name}, {"status", status_word(q.status)}};
    if (!q.measure.empty()) {
      row["measure"] = q.measure;
      row["error"] = std::isfinite(q.error) ? Json(q.error) : Json("not finite");
      row["tolerance"] = q.tolerance;
    }
    if (!q.note.empty()) row["note"] = q.note;
    rows.push_back(std::move(row));
  }
  return {{"schema", "mm_oracle/1"},
          {"folder", folder},
          {"kind", kind},
          {"passed", passed()},
          {"within", count(Quantity::Status::kWithin)},
          {"outside", count(Quantity::Status::kOutside)},
          {"not_built", count(Quantity::Status::kNotBuilt)},
          {"unknown", count(Quantity::Status::kUnknown)},
          {"quantities", std::move(rows)}};
}

}  // namespace mm::oracle
