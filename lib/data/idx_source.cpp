#include <fmt/format.h>

#include <utility>

#include "lib/base/error.h"
#include "lib/data/idx_file.h"
#include "lib/data/source_openers.h"
#include "lib/image/encode.h"

namespace mm::data {
namespace {

/// A grey picture as RGB, in a file of its own.
CarriedPicture picture_of(std::span<const uint8_t> grey, image::Size size) {
  image::Image picture(size.width, size.height);
  for (size_t i = 0; i < grey.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) picture.rgb[3 * i + c] = grey[i];
  }
  // Level 1: the file lives until the picture is packed.
  return std::make_shared<const std::string>(image::encode_png(picture, 1));
}

/// Pictures and labels side by side.
class IdxSource final : public RecordSource {
 public:
  explicit IdxSource(const SourceOptions& options)
      : options_(options), images_(options.path, 3), name_(options.path.filename().string()) {
    const auto beside = labels_beside(options.path);
    if (!beside || !std::filesystem::exists(*beside)) {
      throw DataError("{}: no labels beside it{}", options.path.string(),
                      beside ? fmt::format(" ({})", beside->filename().string())
                             : "; its name should hold \"images\" and \"idx3\"");
    }
    labels_ = std::make_unique<IdxFile>(*beside, 1);
    if (labels_->items() != images_.items())
      throw DataError("{}: {} pictures, {} labels in {}", options.path.string(), images_.items(),
                      labels_->items(), beside->filename().string());
    if (name_.ends_with(".gz")) name_.resize(name_.size() - 3);
  }

  std::optional<SourceItem> next() override {
    std::vector<uint8_t> grey, label;
    if (!images_.next(grey)) return std::nullopt;
    labels_->next(label);
    const auto sides = images_.item_sizes();
    Record record{.row = row_, .key = fmt::format("{}/{}", name_, row_)};
    record.images = {record.key};
    record.carried = {
        picture_of(grey, {static_cast<int32_t>(sides[1]), static_cast<int32_t>(sides[0])})};
    record.label = std::to_string(label.at(0));
    record.conversation = captioned(record.label, 1, options_.question);
    ++row_;
    return record;
  }

 private:
  const SourceOptions options_;
  IdxFile images_;
  std::unique_ptr<IdxFile> labels_;
  std::string name_;
  uint64_t row_ = 0;
};

}  // namespace

std::unique_ptr<RecordSource> open_idx(const SourceOptions& options) {
  return std::make_unique<IdxSource>(options);
}

}  // namespace mm::data
