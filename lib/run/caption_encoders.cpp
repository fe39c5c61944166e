#include "lib/run/caption_encoders.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

namespace fs = std::filesystem;

namespace mm::run {
namespace {

/// T5's end mark, "</s>".
constexpr int64_t kT5End = 1;

at::Tensor rows_up_to(const at::Tensor& x, int64_t width) {
  return at::constant_pad_nd(x, {0, width - x.size(-1)});
}

}  // namespace

CaptionEncoders::CaptionEncoders(const std::vector<fs::path>& directories, int64_t padding,
                                 const fs::path& tokenizer, at::ScalarType dtype)
    : shape_(caption_shape(directories, padding)),
      padding_(padding),
      tokenizers_(open_caption_tokenizers(directories, padding, tokenizer)) {
  for (const fs::path& directory : directories)
    towers_.push_back(std::make_unique<model::LoadedTextEncoder>(directory, dtype));
}

CaptionEncoders::Ids CaptionEncoders::ids_for(
    size_t tower, const std::vector<std::vector<int32_t>>& captions) const {
  const model::TextEncoder& encoder = towers_[tower]->encoder();
  const text::Tokenizer* own = tokenizers_.own[tower].get();
  const auto most = static_cast<size_t>(encoder.max_length);
  Ids all;
  for (const std::vector<int32_t>& caption : captions) {
    const std::vector<int32_t> written =
        own ? own->encode_whole(tokenizers_.given->decode(caption), most) : caption;
    std::vector<int64_t> ids(written.begin(), written.end());
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

model::EncodedText CaptionEncoders::run(size_t tower, const Ids& ids) const {
  const CaptionWriting& writing = tokenizers_.writing[tower];
  const bool pads_seen = towers_[tower]->encoder().pads_seen;
  model::PaddedText padded =
      model::pad_text(ids, {.length = writing.length, .id = std::max<int64_t>(0, writing.pad_id)});
  if (!pads_seen && padding_ > 0) padded.mask.fill_(true);
  return towers_[tower]->encode(padded);
}

CaptionEncoders::States CaptionEncoders::alone(
    const std::vector<std::vector<int32_t>>& captions) const {
  const Ids ids = ids_for(0, captions);
  const model::EncodedText text = run(0, ids);
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
  for (size_t tower = 0; tower < towers_.size(); ++tower) {
    const Ids ids = ids_for(tower, captions);
    const model::EncodedText text = run(tower, ids);
    if (is_clip(towers_[tower]->encoder())) {
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
