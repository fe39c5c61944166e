#include "lib/ckpt/safetensors_header.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "lib/base/error.h"
#include "lib/ckpt/json_scanner.h"

namespace mm::ckpt {
namespace {

constexpr int kMaxDepth = 8;

// What has been read of one entry so far; a field given twice is refused.
struct EntryFields {
  std::optional<DType> dtype;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

class HeaderParser {
 public:
  HeaderParser(std::string_view json, uint64_t data_bytes, std::string_view origin)
      : json_(json), data_bytes_(data_bytes), origin_(origin), scan_(json, origin) {}

  SafetensorsHeader parse() {
    if (json_.empty()) throw DataError("{}: empty header: at least {{}} expected", origin_);
    if (!is_valid_utf8(json_)) throw DataError("{}: header is not valid UTF-8", origin_);
    scan_.skip_space();
    if (scan_.offset() > 0) header_.notes.emplace_back("white space before the header's brace");
    scan_.object("the header", [&](std::string key) { member(std::move(key)); });
    const std::string_view padding = json_.substr(scan_.offset());
    scan_.skip_space();
    if (!scan_.at_end()) scan_.fail("text after the header's closing brace");
    if (padding.find_first_not_of(' ') != std::string_view::npos) {
      header_.notes.emplace_back("header padded with other white space than blanks");
    }
    check_names();
    check_layout();
    return std::move(header_);
  }

 private:
  void member(std::string key) {
    if (key == "__metadata__") {
      if (metadata_seen_) throw DataError("{}: __metadata__ stands twice in the header", origin_);
      metadata_seen_ = true;
      if (!scan_.consume_word("null")) read_metadata();
      return;
    }
    if (key.empty()) throw DataError("{}: a tensor has an empty name", origin_);
    read_entry(std::move(key));
  }

  void read_metadata() {
    scan_.object("__metadata__", [&](std::string key) {
      std::string value = scan_.string("__metadata__ (strings only)");
      if (header_.metadata.contains(key)) {
        header_.notes.push_back("__metadata__ key " + printable_name(key) +
                                " given twice, last one taken");
      }
      header_.metadata[std::move(key)] = std::move(value);
    });
  }

  void read_entry(std::string name) {
    const std::string where = "tensor " + printable_name(name);
    EntryFields fields;
    scan_.object(where, [&](std::string key) { read_field(key, where, fields); });
    if (!fields.dtype) throw DataError("{}: {}: dtype is missing", origin_, where);
    if (!fields.shape) throw DataError("{}: {}: shape is missing", origin_, where);
    if (!fields.offsets) throw DataError("{}: {}: data_offsets is missing", origin_, where);
    if (fields.offsets->size() != 2) {
      throw DataError("{}: {}: data_offsets has {} numbers, 2 expected", origin_, where,
                      fields.offsets->size());
    }
    header_.tensors.push_back({std::move(name), *fields.dtype, std::move(*fields.shape),
                               fields.offsets->front(), fields.offsets->back()});
    check_size(header_.tensors.back(), where);
  }

  void read_field(const std::string& key, const std::string& where, EntryFields& fields) {
    const auto once = [&](bool seen) {
      if (seen) throw DataError("{}: {}: {} is given twice", origin_, where, key);
    };
    if (key == "dtype") {
      once(fields.dtype.has_value());
      const std::string word = scan_.string("dtype");
      fields.dtype = parse_dtype(word);
      if (!fields.dtype) {
        throw DataError("{}: {}: unknown dtype {}; known are {}", origin_, where,
                        printable_name(word), dtype_names());
      }
    } else if (key == "shape") {
      once(fields.shape.has_value());
      fields.shape = numbers("shape");
    } else if (key == "data_offsets") {
      once(fields.offsets.has_value());
      fields.offsets = numbers("data_offsets");
    } else {
      header_.notes.push_back(where + " has an unknown field " + printable_name(key));
      scan_.skip_value(kMaxDepth - 2);
    }
  }

  std::vector<uint64_t> numbers(std::string_view where) {
    std::vector<uint64_t> values;
    scan_.array(where, [&] { values.push_back(scan_.u64(where)); });
    return values;
  }

  void check_size(const TensorEntry& entry, const std::string& where) const {
    for (const uint64_t dimension : entry.shape) {
      if (dimension > kMaxDimension) {
        throw DataError("{}: {}: dimension {} is above 2^48-1", origin_, where, dimension);
      }
    }
    const Result<uint64_t> needed = packed_bytes(entry.dtype, entry.shape);
    if (!needed) throw DataError("{}: {}: {}", origin_, where, needed.failure().message);
    if (entry.begin > entry.end) {
      throw DataError("{}: {}: data_offsets [{}, {}) run backwards", origin_, where, entry.begin,
                      entry.end);
    }
    if (entry.size_bytes() != *needed) {
      throw DataError("{}: {}: {} of shape {} needs {} bytes, data_offsets [{}, {}) hold {}",
                      origin_, where, dtype_name(entry.dtype), shape_text(entry.shape), *needed,
                      entry.begin, entry.end, entry.size_bytes());
    }
  }

  void check_names() const {
    std::vector<std::string_view> names;
    names.reserve(header_.tensors.size());
    for (const TensorEntry& entry : header_.tensors) names.push_back(entry.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
      throw DataError("{}: tensor {} stands twice in the header", origin_, printable_name(*twice));
    }
  }

  void check_layout() {
    std::sort(header_.tensors.begin(), header_.tensors.end(),
              [](const TensorEntry& a, const TensorEntry& b) {
                return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
              });
    uint64_t covered = 0;
    std::string_view previous;
    for (const TensorEntry& entry : header_.tensors) {
      if (entry.begin < covered) {
        throw DataError("{}: tensor {} at [{}, {}) overlaps tensor {}, which ends at {}", origin_,
                        printable_name(entry.name), entry.begin, entry.end,
                        printable_name(previous), covered);
      }
      if (entry.begin > covered) {
        throw DataError("{}: hole of {} bytes at [{}, {}) before tensor {}", origin_,
                        entry.begin - covered, covered, entry.begin, printable_name(entry.name));
      }
      covered = entry.end;
      previous = entry.name;
    }
    if (covered > data_bytes_) {
      throw DataError("{}: truncated by {} bytes: tensors need {} bytes of data, the file holds {}",
                      origin_, covered - data_bytes_, covered, data_bytes_);
    }
    if (covered < data_bytes_) {
      throw DataError("{}: longer by {} bytes: tensors end at {} of {} bytes of data", origin_,
                      data_bytes_ - covered, covered, data_bytes_);
    }
  }

  std::string_view json_;
  uint64_t data_bytes_;
  std::string_view origin_;
  JsonScanner scan_;
  SafetensorsHeader header_;
  bool metadata_seen_ = false;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes,
                                           std::string_view origin) {
  return HeaderParser(json, data_bytes, origin).parse();
}

}  // namespace mm::ckpt
