#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/result.h"
#include "lib/data/record.h"

namespace mm::data {

/// Pictures of a row in order.
struct RowPictures {
  std::vector<std::string> names;       ///< paths as recorded, or a name for carried content
  std::vector<CarriedPicture> carried;  ///< as long as `names`; null: a file

  void add(std::string name, CarriedPicture content = nullptr);
  /// Moves picture `i` of `other` to the end.
  void take(RowPictures& other, size_t i);
  /// Into the record; `carried` stays empty if all are files.
  void move_to(Record& record);
};

/// Adds what one value says of a picture:
/// - a path, or a data URL with base 64;
/// - {"bytes": base 64 or binary or null, "path": name or null}, {"url": ...}, {"path": ...};
/// - "" or null: no picture.
/// Failure "bad_row" for other things, "remote" for http and https: nothing is fetched while
/// packing.
std::optional<Failure> add_picture(const Json& value, RowPictures& pictures);

/// All pictures of a row, from the first of image_columns() that is there: one, or a list of them.
/// A row with a `video`, `videos` or `audios` is refused.
Result<RowPictures> pictures_of_row(const Json& row);

}  // namespace mm::data
