#include "lib/data/record_sum.h"

#include <span>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/stream_copy.h"

namespace mm::data {

RecordSum::RecordSum(const OpenRecord& record)
    : at_(record.payload.data()),
      end_(at_ + record.payload.size()),
      sum_(record.seed),
      crc_(record.crc) {}

void RecordSum::sum_up_to(const char* place) {
  MM_CHECK(place >= at_ && place <= end_, "a record's parts are not in order");
  sum_ = crc32c(std::string_view(at_, place), sum_);
  at_ = place;
}

void RecordSum::copy(std::string_view part, uint8_t* to) {
  sum_up_to(part.data());
  MM_CHECK(part.size() <= static_cast<size_t>(end_ - at_), "a part beyond its record");
  sum_ = stream_copy_crc32c(std::as_bytes(std::span(part)), reinterpret_cast<std::byte*>(to), sum_);
  at_ += part.size();
}

bool RecordSum::agrees() {
  sum_up_to(end_);
  return sum_ == crc_;
}

}  // namespace mm::data
