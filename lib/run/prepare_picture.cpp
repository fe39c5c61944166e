#include "lib/run/prepare_picture.h"

#include "lib/base/error.h"
#include "lib/data/picture_packer.h"
#include "lib/image/prepare.h"
#include "lib/image/tiling.h"

namespace mm::run {
namespace {

data::PictureOptions packed_with(const TrainedModel& trained) {
  return data::picture_options_from(trained.data.options.value("pictures", Json::object()),
                                    (trained.run / "data.json").string());
}

/// Several tiles, or a size of its own.
PreparedPicture prepare_varied(const TrainedModel& trained, const std::string& bytes,
                               const std::string& origin) {
  const data::PictureOptions options = packed_with(trained);
  const auto decoded = image::decode(image::as_bytes(bytes), data::decode_options_of(options));
  if (!decoded) throw DataError("{}: {}", origin, decoded.failure().message);
  const image::Preparation preparation = data::preparation_of(options);
  const image::Image tiles = image::prepare_tiles(decoded->image, preparation);
  const data::PictureGrid grid =
      data::grid_from(image::shape_of({decoded->image.width, decoded->image.height}, preparation));
  return {{tiles.rgb.begin(), tiles.rgb.end()}, grid};
}

}  // namespace

PreparedPicture prepare_picture(const TrainedModel& trained, const std::string& bytes,
                                const std::string& origin) {
  if (trained.config.varied_pictures()) return prepare_varied(trained, bytes, origin);
  const auto geometry = image::geometry_from_name(trained.data.pictures.geometry);
  const auto filter = image::filter_from_name(trained.data.pictures.filter);
  const auto order = image::pass_order_from_name(packed_with(trained).pass_order);
  if (!geometry || !filter || !order)
    throw DataError("{}: unknown preparation {} {}", (trained.run / "data.json").string(),
                    trained.data.pictures.geometry, trained.data.pictures.filter);
  const auto decoded = image::decode_prepared(
      image::as_bytes(bytes), {.geometry = *geometry,
                               .side = static_cast<int32_t>(trained.config.vision.image_size),
                               .filter = *filter,
                               .order = *order});
  if (!decoded) throw DataError("{}: {}", origin, decoded.failure().message);
  return {{decoded->image.rgb.begin(), decoded->image.rgb.end()}, {}};
}

}  // namespace mm::run
