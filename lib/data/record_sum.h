#pragma once
#include <cstdint>
#include <string_view>

namespace mm::data {

/// A record's payload, not yet compared with its checksum. Borrowed.
struct OpenRecord {
  std::string_view payload;
  uint32_t seed = 0;  ///< CRC32C of the id, after which the payload's goes on
  uint32_t crc = 0;   ///< what the record's head says of both
};

/// Compares a record with its checksum while it is used, front to back: what is copied is summed in
/// the same pass, so that memory is read once. Nothing that came of the record counts before
/// `agrees` said so. Borrows the payload. One thread.
class RecordSum {
 public:
  explicit RecordSum(const OpenRecord& record);
  /// Copies `part` of the payload, which lies behind all parts before.
  void copy(std::string_view part, uint8_t* to);
  /// Sums what is left. Whether the record is what was written.
  bool agrees();

 private:
  void sum_up_to(const char* place);
  const char* at_;
  const char* const end_;
  uint32_t sum_;
  const uint32_t crc_;
};

}  // namespace mm::data
