#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/data/pack_options.h"
#include "lib/data/pack_unit.h"

namespace mm::data {

/// How the pictures of a set lie in its buckets; kept in the manifest.
struct Bucketing {
  std::vector<uint64_t> pictures;  ///< [buckets], in the order of the manifest's table
  uint64_t enlarged = 0;           ///< scaled up, as no bucket was small enough
  double largest_scale = 0;        ///< most that a side was multiplied by
  double cut_away = 0;             ///< mean share of a scaled picture that lies outside its bucket
  uint64_t cut_captions = 0;       ///< longer than the maximum length

  uint64_t filled() const;  ///< buckets with pictures
};

Bucketing bucketing_of(std::span<const UnitSample> samples, const PictureOptions& pictures);
Json to_json(const Bucketing& bucketing);
/// Throws DataError naming `origin`.
Bucketing bucketing_from_json(const Json& json, std::string_view origin);

/// "in 7 of 9 buckets; 3 enlarged, by 1.63 at most; 4.1 % cut away on average; 2 captions cut".
std::string bucketing_line(const Bucketing& bucketing);

}  // namespace mm::data
