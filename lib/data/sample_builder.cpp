#include "lib/data/sample_builder.h"

#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/data/image_path.h"
#include "lib/image/encode.h"
#include "lib/image/prepare.h"

namespace mm::data {
namespace {

constexpr uint64_t kMaxPictureFileBytes = uint64_t{1} << 30;

text::ChatTemplate template_of(const PackOptions& options) {
  check(options);
  return *text::find_template(options.chat_template);
}

/// The conversation without pictures and their marks.
text::Conversation without_pictures(text::Conversation conversation) {
  conversation.images = 0;
  for (text::Turn& turn : conversation.turns) {
    for (size_t at; (at = turn.text.find(text::kImageMark)) != std::string::npos;) {
      size_t length = text::kImageMark.size();
      if (turn.text.compare(at + length, 1, "\n") == 0) ++length;
      turn.text.erase(at, length);
    }
  }
  return conversation;
}

SampleText text_of(const text::RenderedSample& rendered) {
  SampleText text{rendered.ids, {}, {}};
  for (uint32_t i = 0; i < rendered.labels.size(); ++i) {
    if (rendered.labels[i] == kIgnore) continue;
    if (!text.trainable.empty() && text.trainable.back().end == i) {
      ++text.trainable.back().end;
    } else {
      text.trainable.push_back({i, i + 1});
    }
  }
  for (const text::ImageSpan& span : rendered.images)
    text.image_begin.push_back(static_cast<uint32_t>(span.begin));
  return text;
}

}  // namespace

SampleBuilder::SampleBuilder(const PackOptions& options, const text::Tokenizer& tokenizer)
    : options_(options),
      tokenizer_(tokenizer),
      template_(template_of(options)),
      picture_tokens_(picture_tokens(options)) {}

Result<text::RenderedSample> SampleBuilder::render(const Record& record) const {
  const text::RenderOptions render_options{.image_tokens = picture_tokens_,
                                           .max_length = options_.max_length};
  if (!options_.text_only)
    return text::render(record.conversation, template_, tokenizer_, render_options);
  return text::render(without_pictures(record.conversation), template_, tokenizer_, render_options);
}

Result<CarriedPicture> SampleBuilder::fetch(const Record& record, size_t i) const {
  if (record.content(i) != nullptr) return record.carried[i];
  const auto root =
      record.root.empty() ? options_.source.root() : std::filesystem::path(record.root);
  const auto path = resolve_image_path(root, record.images[i], options_.source.links);
  if (!path) return path.failure();
  return std::make_shared<const std::string>(read_file(*path, kMaxPictureFileBytes));
}

Result<std::string> SampleBuilder::prepare(const std::string& file) const {
  const PictureOptions& pictures = options_.pictures;
  const auto decoded =
      image::decode_prepared(image::as_bytes(file),
                             {.geometry = *image::geometry_from_name(pictures.geometry),
                              .side = pictures.side,
                              .filter = *image::filter_from_name(pictures.filter)},
                             {.limits = pictures.limits});
  if (!decoded) return decoded.failure();
  const image::Image& image = decoded->image;
  if (pictures.storage == "jpeg")
    return image::encode_jpeg(image, {.quality = pictures.jpeg_quality});
  return std::string(image.rgb.begin(), image.rgb.end());
}

std::variant<BuiltSample, LedgerEntry> SampleBuilder::build(const Record& record) const {
  const auto refuse = [&](const std::string& path, const Failure& failure) {
    return LedgerEntry{record.row, record.key, path, failure.kind, failure.message};
  };
  const auto rendered = render(record);
  if (!rendered) return refuse({}, rendered.failure());
  const SampleText text = text_of(*rendered);
  // A label on the first token alone would train on nothing after the shift.
  if (size_of(text).targets == 0) return refuse({}, {"no_targets", "no token to train on"});
  BuiltSample sample{.row = record.row, .key = record.key, .size = size_of(text)};
  sample.repeat = record.repeat;
  std::vector<std::string> files;
  if (!options_.text_only) {
    for (size_t i = 0; i < record.images.size(); ++i) {
      const auto content = fetch(record, i);
      if (!content) return refuse(record.images[i], content.failure());
      auto file = prepare(**content);
      if (!file) return refuse(record.images[i], file.failure());
      sample.picture_hashes.push_back(xxh3_64(std::string_view(**content)));
      files.push_back(std::move(*file));
    }
  }
  const auto side = static_cast<uint16_t>(options_.pictures.side);
  std::vector<StoredPicture> pictures;
  for (const std::string& file : files) {
    pictures.push_back(
        {options_.pictures.storage == "jpeg" ? PictureCodec::kJpeg : PictureCodec::kRaw, side, side,
         file});
  }
  if (!pictures.empty()) sample.width = sample.height = side;
  sample.payload = encode_sample(text, pictures);
  return sample;
}

}  // namespace mm::data
