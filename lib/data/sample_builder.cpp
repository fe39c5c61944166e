#include "lib/data/sample_builder.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/data/bucket_text.h"
#include "lib/data/image_path.h"

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

void warn_of_damage(const Record& record, size_t i, const PackedPicture& picture,
                    BuiltSample& sample) {
  for (const Failure& damage : picture.damage)
    sample.warnings.push_back({.row = record.row,
                               .key = record.key,
                               .path = record.images[i],
                               .kind = damage.kind,
                               .message = damage.message,
                               .warned = true});
}

}  // namespace

SampleBuilder::SampleBuilder(const PackOptions& options, const text::Tokenizer& tokenizer)
    : options_(options),
      tokenizer_(tokenizer),
      template_(template_of(options)),
      picture_tokens_(picture_tokens(options)) {
  if (!options.text_only) packer_.emplace(options.pictures);
}

Result<CarriedPicture> SampleBuilder::fetch(const Record& record, size_t i) const {
  if (record.content(i) != nullptr) return record.carried[i];
  const auto root =
      record.root.empty() ? options_.source.root() : std::filesystem::path(record.root);
  const auto path = resolve_image_path(root, record.images[i], options_.source.links);
  if (!path) return path.failure();
  return std::make_shared<const std::string>(read_file(*path, kMaxPictureFileBytes));
}

Result<text::RenderedSample> SampleBuilder::render(const Record& record,
                                                   std::span<const PictureGrid> grids) const {
  text::RenderOptions render_options{.image_tokens = picture_tokens_,
                                     .max_length = options_.max_length};
  for (const PictureGrid& grid : grids) render_options.picture_tokens.push_back(grid.tokens);
  if (!options_.text_only)
    return text::render(record.conversation, template_, tokenizer_, render_options);
  return text::render(without_pictures(record.conversation), template_, tokenizer_, render_options);
}

std::optional<LedgerEntry> SampleBuilder::add_pictures(const Record& record, size_t count,
                                                       Pictures& pictures) const {
  const auto refuse = [&](size_t i, const Failure& failure) {
    return LedgerEntry{record.row, record.key, record.images[i], failure.kind, failure.message};
  };
  for (size_t i = 0; i < count; ++i) {
    if (pictures.files.size() <= i) {
      auto content = fetch(record, i);
      if (!content) return refuse(i, content.failure());
      pictures.files.push_back(std::move(*content));
    }
    auto packed = packer_->pack(*pictures.files[i], record.orientation);
    if (!packed) return refuse(i, packed.failure());
    pictures.packed.push_back(std::move(*packed));
  }
  return std::nullopt;
}

std::optional<LedgerEntry> SampleBuilder::add_grids(const Record& record,
                                                    Pictures& pictures) const {
  for (size_t i = 0; i < record.images.size(); ++i) {
    auto content = fetch(record, i);
    Result<PictureGrid> grid =
        content ? packer_->grid_of(**content, record.orientation) : content.failure();
    if (!grid) {
      return LedgerEntry{record.row, record.key, record.images[i], grid.failure().kind,
                         grid.failure().message};
    }
    pictures.files.push_back(std::move(*content));
    pictures.grids.push_back(*grid);
  }
  return std::nullopt;
}

std::variant<BuiltSample, LedgerEntry> SampleBuilder::build_bucketed(const Record& record) const {
  const auto refuse = [&](const Failure& failure, const std::string& path) {
    return LedgerEntry{record.row, record.key, path, failure.kind, failure.message};
  };
  if (record.images.size() != 1) {
    return refuse({"image_count", fmt::format("{} pictures; a sample of a bucketed set has one",
                                              record.images.size())},
                  {});
  }
  auto text = bucket_text(record, tokenizer_, options_);
  if (!text) return refuse(text.failure(), {});
  const auto file = fetch(record, 0);
  if (!file) return refuse(file.failure(), record.images[0]);
  const auto picture = packer_->pack(**file, record.orientation);
  if (!picture) return refuse(picture.failure(), record.images[0]);
  BuiltSample sample{.row = record.row, .key = record.key};
  sample.size = {.tokens = static_cast<int32_t>(text->ids.size()),
                 .images = 1,
                 .targets = 1,
                 .bucket = {picture->height, picture->width}};
  sample.width = picture->width;
  sample.height = picture->height;
  sample.original = {picture->grid->original_width, picture->grid->original_height};
  sample.cut = text->cut;
  sample.repeat = record.repeat;
  sample.source = record.source;
  sample.picture_hashes.push_back(xxh3_64(std::string_view(**file)));
  warn_of_damage(record, 0, *picture, sample);
  const StoredPicture stored = picture->stored();
  sample.payload = encode_sample({std::move(text->ids), {}, {0}}, {&stored, 1});
  return sample;
}

std::variant<BuiltSample, LedgerEntry> SampleBuilder::build(const Record& record) const {
  if (is_bucketed(options_)) return build_bucketed(record);
  Pictures pictures;
  if (packer_ && packer_->varied()) {
    if (auto bad = add_grids(record, pictures)) return *bad;
  }
  const auto refuse = [&](const Failure& failure) {
    return LedgerEntry{record.row, record.key, {}, failure.kind, failure.message};
  };
  const auto rendered = render(record, pictures.grids);
  if (!rendered) return refuse(rendered.failure());
  const SampleText text = text_of(*rendered);
  // A cut from the end may leave pictures out of a document.
  const size_t count = text.image_begin.size();
  pictures.grids.resize(std::min(pictures.grids.size(), count));
  BuiltSample sample{.row = record.row, .key = record.key, .size = size_of(text, pictures.grids)};
  // A label on the first token alone would train on nothing after the shift.
  if (sample.size.targets == 0) return refuse({"no_targets", "no token to train on"});
  sample.repeat = record.repeat;
  sample.source = record.source;
  if (packer_) {
    if (auto bad = add_pictures(record, count, pictures)) return *bad;
  }
  std::vector<StoredPicture> stored;
  for (size_t i = 0; i < pictures.packed.size(); ++i) {
    const PackedPicture& picture = pictures.packed[i];
    warn_of_damage(record, i, picture, sample);
    stored.push_back(picture.stored());
    sample.width = std::max<int32_t>(sample.width, picture.width);
    sample.height = std::max<int32_t>(sample.height, picture.height);
  }
  for (const CarriedPicture& file : pictures.files)
    sample.picture_hashes.push_back(xxh3_64(std::string_view(*file)));
  sample.payload = encode_sample(text, stored);
  return sample;
}

}  // namespace mm::data
