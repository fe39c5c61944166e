#include "lib/run/caption_encoders.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <optional>

#include "lib/base/error.h"
#include "lib/data/dataset_manifest.h"

namespace fs = std::filesystem;

namespace mm::run {
namespace {

/// T5's end mark, "</s>".
constexpr int64_t kT5End = 1;

/// Where the tokenizer of an encoder may lie: diffusers' pipelines have it beside the encoder.
std::vector<fs::path> tokenizer_places(const fs::path& encoder) {
  std::vector<fs::path> places{encoder};
  constexpr std::string_view kEncoder = "text_encoder";
  const std::string name = encoder.filename().string();
  if (name.starts_with(kEncoder))
    places.push_back(encoder.parent_path() / ("tokenizer" + name.substr(kEncoder.size())));
  return places;
}

/// Whether the encoder has a tokenizer file of this content.
bool has_tokenizer(const fs::path& encoder, const std::string& hash) {
  for (const fs::path& place : tokenizer_places(encoder)) {
    for (const char* name : {"spiece.model", "tokenizer.model", "tokenizer.json", "vocab.txt",
                             "vocab.json", "sentencepiece.bpe.model"}) {
      if (fs::is_regular_file(place / name) && data::describe_file(place, name).xxh3_128 == hash)
        return true;
    }
  }
  return false;
}

std::unique_ptr<const text::Tokenizer> own_tokenizer(const fs::path& encoder) {
  for (const fs::path& place : tokenizer_places(encoder)) {
    for (const char* name :
         {"tokenizer.json", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model"}) {
      if (fs::is_regular_file(place / name))
        return text::load_tokenizer(place / name, {.extra_marks = {}});
    }
  }
  throw DataError("{}: no tokenizer.json or SentencePiece model in it to write captions in its ids",
                  encoder.string());
}

/// What a CLIP encoder's captions are filled up with: pad_token of its tokenizer_config.json, since
/// published config.json files name an id that is none of padding; `otherwise` without one.
int64_t padding_id(const fs::path& encoder, const text::Tokenizer& tokenizer, int64_t otherwise) {
  for (const fs::path& place : tokenizer_places(encoder)) {
    const fs::path path = place / "tokenizer_config.json";
    if (!fs::is_regular_file(path)) continue;
    const Json config = read_json_file(path);
    Json pad = config.is_object() ? config.value("pad_token", Json()) : Json();
    if (pad.is_object()) pad = pad.value("content", Json());
    if (!pad.is_string()) continue;
    const auto id = tokenizer.piece_to_id(pad.get<std::string>());
    if (!id)
      throw DataError("{}: pad_token {} is no piece of the tokenizer", path.string(), pad.dump());
    return *id;
  }
  return otherwise;
}

/// Sizes of an encoder, with the number of its weights; nothing is allocated.
struct Declared {
  model::TextEncoder encoder;
  double elements = 0;
};
Declared declare(const fs::path& directory) {
  const fs::path path = directory / "config.json";
  model::Model model;
  Declared out{.encoder =
                   model::declare_text_encoder(model, read_json_file(path), path.string(), "")};
  for (const model::ParamSpec& spec : model.params)
    out.elements += static_cast<double>(c10::multiply_integers(spec.shape));
  return out;
}

bool is_clip(const model::TextEncoder& encoder) {
  return encoder.family == model::TextFamily::kClip;
}

void check_joined(const std::vector<Declared>& all, const std::vector<fs::path>& directories) {
  int64_t clips = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool last = i + 1 == all.size();
    const bool t5 = all[i].encoder.family == model::TextFamily::kT5;
    if (is_clip(all[i].encoder)) clips += all[i].encoder.width;
    if (is_clip(all[i].encoder) || (last && t5 && clips <= all[i].encoder.width)) continue;
    throw UsageError(
        "{}: several text models are CLIP encoders, then at most one T5 that is at least as wide "
        "as they are together ({})",
        directories[i].string(), clips);
  }
}

at::Tensor rows_up_to(const at::Tensor& x, int64_t width) {
  return at::constant_pad_nd(x, {0, width - x.size(-1)});
}

}  // namespace

CaptionShape caption_shape(const std::vector<fs::path>& directories, int64_t padding) {
  MM_CHECK(!directories.empty(), "a caption has at least one encoder");
  std::vector<Declared> all;
  for (const fs::path& directory : directories) all.push_back(declare(directory));
  const model::TextEncoder& last = all.back().encoder;
  CaptionShape shape{.width = last.width, .pooled_width = last.pooled_width};
  shape.length = last.pads_seen ? last.max_length : padding;
  if (all.size() > 1) {
    check_joined(all, directories);
    shape.pooled_width = 0;
    int64_t width = 0, rows = 0;
    for (const Declared& one : all) {
      if (!is_clip(one.encoder)) continue;
      shape.pooled_width += one.encoder.pooled_width;
      width += one.encoder.width;
      if (rows != 0 && rows != one.encoder.max_length)
        throw UsageError("text models of {} and {} positions cannot stand side by side", rows,
                         one.encoder.max_length);
      rows = one.encoder.max_length;
    }
    shape.width = is_clip(last) ? width : last.width;
    shape.length = is_clip(last) ? rows : (padding > 0 ? rows + padding : 0);
  }
  for (const Declared& one : all) shape.elements += one.elements;
  return shape;
}

CaptionEncoders::CaptionEncoders(const std::vector<fs::path>& directories, int64_t padding,
                                 const fs::path& tokenizer, at::ScalarType dtype)
    : shape_(caption_shape(directories, padding)), padding_(padding) {
  const std::string hash =
      data::describe_file(tokenizer.parent_path(), tokenizer.filename().string()).xxh3_128;
  bool known = false, needed = false;
  for (const fs::path& directory : directories) {
    towers_.push_back({.encoder = std::make_unique<model::LoadedTextEncoder>(directory, dtype)});
    const bool same = has_tokenizer(directory, hash);
    known = known || same;
    needed = needed || !same || is_clip(towers_.back().encoder->encoder());
    if (!same && directories.size() > 1) towers_.back().own = own_tokenizer(directory);
  }
  if (!known)
    throw DataError(
        "{}: none of its tokenizer files is that of the data set ({}); pack the set with the text "
        "encoder's own",
        directories.back().string(), tokenizer.filename().string());
  if (needed) given_ = text::load_tokenizer(tokenizer);
  for (size_t i = 0; i < towers_.size(); ++i) {
    Tower& tower = towers_[i];
    const model::TextEncoder& encoder = tower.encoder->encoder();
    tower.pad_id = !is_clip(encoder) ? encoder.pad_id
                                     : padding_id(directories[i], tower.own ? *tower.own : *given_,
                                                  encoder.pad_id);
  }
}

CaptionEncoders::Ids CaptionEncoders::ids_for(
    const Tower& tower, const std::vector<std::vector<int32_t>>& captions) const {
  const model::TextEncoder& encoder = tower.encoder->encoder();
  const auto most = static_cast<size_t>(encoder.max_length);
  Ids all;
  for (const std::vector<int32_t>& caption : captions) {
    const std::vector<int32_t> own =
        tower.own ? tower.own->encode_whole(given_->decode(caption), most) : caption;
    std::vector<int64_t> ids(own.begin(), own.end());
    // A caption that is cut keeps its end mark.
    if (is_clip(encoder) && ids.size() > most) {
      ids[most - 1] = ids.back();
      ids.resize(most);
    }
    if (encoder.family == model::TextFamily::kT5) {
      if (padding_ > 0 && std::ssize(ids) >= padding_)
        ids.resize(static_cast<size_t>(padding_ - 1));
      if (ids.empty() || ids.back() != kT5End) ids.push_back(kT5End);
    }
    all.push_back(std::move(ids));
  }
  return all;
}

model::EncodedText CaptionEncoders::run(const Tower& tower, const Ids& ids) const {
  const model::TextEncoder& encoder = tower.encoder->encoder();
  const int64_t length = encoder.pads_seen ? encoder.max_length : padding_;
  model::PaddedText padded = model::pad_text(ids, {.length = length, .id = tower.pad_id});
  if (!encoder.pads_seen && padding_ > 0) padded.mask.fill_(true);
  return tower.encoder->encode(padded);
}

CaptionEncoders::States CaptionEncoders::alone(
    const std::vector<std::vector<int32_t>>& captions) const {
  const Tower& tower = towers_.front();
  const Ids ids = ids_for(tower, captions);
  const model::EncodedText text = run(tower, ids);
  States out{.pooled = text.pooled};
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t rows = shape_.length > 0 ? shape_.length : std::ssize(ids[i]);
    out.hidden.push_back(text.hidden[static_cast<int64_t>(i)].narrow(0, 0, rows));
  }
  return out;
}

CaptionEncoders::States CaptionEncoders::joined(
    const std::vector<std::vector<int32_t>>& captions) const {
  std::vector<at::Tensor> clips, pooled;
  std::optional<model::EncodedText> t5;
  Ids t5_ids;
  for (const Tower& tower : towers_) {
    const Ids ids = ids_for(tower, captions);
    const model::EncodedText text = run(tower, ids);
    if (is_clip(tower.encoder->encoder())) {
      clips.push_back(text.penultimate);
      pooled.push_back(text.pooled);
    } else {
      t5 = text;
      t5_ids = ids;
    }
  }
  const at::Tensor side_by_side = rows_up_to(at::cat(clips, 2), shape_.width);
  States out{.pooled = at::cat(pooled, 1)};
  for (size_t i = 0; i < captions.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    if (!t5) {
      out.hidden.push_back(side_by_side[row]);
      continue;
    }
    const int64_t rows = padding_ > 0 ? padding_ : std::ssize(t5_ids[i]);
    out.hidden.push_back(at::cat({side_by_side[row], t5->hidden[row].narrow(0, 0, rows)}));
  }
  return out;
}

CaptionEncoders::States CaptionEncoders::encode(
    const std::vector<std::vector<int32_t>>& captions) const {
  if (captions.empty()) return {.pooled = at::zeros({0, shape_.pooled_width})};
  return towers_.size() == 1 ? alone(captions) : joined(captions);
}

}  // namespace mm::run
