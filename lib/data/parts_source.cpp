#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/mixture_turns.h"
#include "lib/data/source_openers.h"

namespace mm::data {
namespace {

constexpr double kMillion = 1e6;
constexpr double kMaxRepeat = 1e6;

/// One part: as many passes over its source as it asks for, the last perhaps thinned. Records get
/// the root that their pictures start from.
class PartSource final : public RecordSource {
 public:
  /// `number`: of the part, for its records; none where parts are files of one source.
  PartSource(SourcePart part, std::optional<uint32_t> number)
      : part_(std::move(part)), number_(number) {
    if (!(part_.repeat > 0) || part_.repeat > kMaxRepeat) {
      throw UsageError("{}: repeat is {}; it must be above 0 and at most {}",
                       part_.options.path.string(), part_.repeat, kMaxRepeat);
    }
    whole_passes_ = static_cast<uint32_t>(part_.repeat);
    millionths_ = static_cast<uint64_t>(
        std::llround((part_.repeat - static_cast<double>(whole_passes_)) * kMillion));
  }

  std::optional<SourceItem> next() override {
    for (; pass_ < whole_passes_ + (millionths_ > 0 ? 1U : 0U); ++pass_, source_.reset()) {
      if (source_ == nullptr) start_pass();
      while (auto item = source_->next()) {
        const uint64_t row = row_++;
        if (pass_ == whole_passes_ && !is_taken(row)) continue;
        if (auto* record = std::get_if<Record>(&*item)) finish(*record);
        return item;
      }
      if (row_ == 0) return std::nullopt;  // an empty source stays empty, however often it is read
    }
    return std::nullopt;
  }

  std::string name() const { return part_.options.path.string(); }

 private:
  void start_pass() {
    source_ = open_source(part_.options);
    row_ = 0;
  }
  /// A share of the rows, evenly spread: exact to one row in every prefix.
  bool is_taken(uint64_t row) const {
    constexpr auto kParts = static_cast<uint64_t>(kMillion);
    return (row + 1) * millionths_ / kParts > row * millionths_ / kParts;
  }
  void finish(Record& record) const {
    if (record.root.empty()) record.root = part_.options.root().string();
    record.repeat = std::max(record.repeat, pass_);
    if (number_) record.source = *number_;
  }

  const SourcePart part_;
  const std::optional<uint32_t> number_;
  uint32_t whole_passes_ = 1;
  uint64_t millionths_ = 0;  ///< of the rows, in the pass after the whole ones
  std::unique_ptr<RecordSource> source_;
  uint32_t pass_ = 0;
  uint64_t row_ = 0;  ///< in this pass
};

std::optional<uint32_t> number_of(size_t part, PartNames names) {
  if (names == PartNames::kFiles) return std::nullopt;
  return static_cast<uint32_t>(part);
}

class SequenceSource final : public RecordSource {
 public:
  SequenceSource(std::vector<SourcePart> parts, PartNames names)
      : parts_(std::move(parts)), names_(names) {}

  std::optional<SourceItem> next() override {
    for (; at_ < parts_.size(); ++at_, source_.reset()) {
      if (!source_) source_.emplace(parts_[at_], number_of(at_, names_));
      if (auto item = source_->next()) {
        renumber(*item, row_++);
        return item;
      }
    }
    return std::nullopt;
  }

 private:
  const std::vector<SourcePart> parts_;
  const PartNames names_;
  std::optional<PartSource> source_;
  size_t at_ = 0;
  uint64_t row_ = 0;
};

/// Bad and skipped rows pass through without counting, so the shares are those of good rows.
class WeightedSource final : public RecordSource {
 public:
  WeightedSource(const std::vector<SourcePart>& parts, PartNames names)
      : turns_(weights_of(parts)) {
    for (size_t i = 0; i < parts.size(); ++i) sources_.emplace_back(parts[i], number_of(i, names));
  }

  std::optional<SourceItem> next() override {
    if (ended_) return std::nullopt;
    const size_t part = turns_.due();
    auto item = sources_[part].next();
    if (!item) {
      ended_ = true;
      item =
          LedgerEntry{row_, "mixture", sources_[part].name(), "mixture_end", summary(part), true};
    } else if (std::holds_alternative<Record>(*item)) {
      turns_.took(part);
    }
    renumber(*item, row_++);
    return item;
  }

 private:
  static std::vector<double> weights_of(const std::vector<SourcePart>& parts) {
    std::vector<double> weights;
    for (const SourcePart& part : parts) weights.push_back(part.weight);
    return weights;
  }
  std::string summary(size_t ended) const {
    std::string text =
        fmt::format("{} has no more rows, so the mixture ends; it took", sources_[ended].name());
    for (size_t i = 0; i < sources_.size(); ++i)
      text += fmt::format("{} {} of {}", i == 0 ? "" : ",", turns_.count(i), sources_[i].name());
    return text;
  }

  MixtureTurns turns_;
  std::vector<PartSource> sources_;
  bool ended_ = false;
  uint64_t row_ = 0;
};

}  // namespace

std::unique_ptr<RecordSource> open_parts(std::vector<SourcePart> parts, PartNames names) {
  const auto weighted = std::count_if(parts.begin(), parts.end(),
                                      [](const SourcePart& part) { return part.weight != 0; });
  if (weighted == 0) return std::make_unique<SequenceSource>(std::move(parts), names);
  if (static_cast<size_t>(weighted) != parts.size()) {
    throw UsageError("{} of {} sources have a weight; give all of them one, or none", weighted,
                     parts.size());
  }
  return std::make_unique<WeightedSource>(parts, names);
}

}  // namespace mm::data
