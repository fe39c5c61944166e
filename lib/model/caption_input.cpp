#include "lib/model/caption_input.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"

namespace mm::model {
namespace {

at::Tensor long_tensor(const std::vector<int64_t>& values) {
  return at::tensor(values, at::TensorOptions().dtype(at::kLong));
}

// [n] flags of dropped captions; undefined stands for none.
std::vector<bool> dropped_of(const DiffusionInput* in, int64_t n) {
  std::vector<bool> dropped(static_cast<size_t>(n), false);
  if (in == nullptr || !in->caption_dropped.defined()) return dropped;
  const at::Tensor flags = in->caption_dropped.to(at::kCPU, at::kBool).contiguous();
  MM_CHECK(flags.numel() == n, "{} drop flags for {} captions", flags.numel(), n);
  for (int64_t i = 0; i < n; ++i) dropped[i] = flags.const_data_ptr<bool>()[i];
  return dropped;
}

at::Tensor first_rows(const std::vector<int64_t>& lengths, int64_t length) {
  return at::arange(length, at::kLong).unsqueeze(0) < long_tensor(lengths).unsqueeze(1);
}

int64_t longest(const std::vector<int64_t>& lengths) {
  int64_t length = 1;
  for (int64_t n : lengths) length = std::max(length, n);
  return length;
}

CaptionRows encoded_rows(const DiffusionConfig& config, const Batch& batch) {
  const CaptionTokens tokens = caption_tokens(config, batch);
  std::vector<int64_t> lengths;
  for (size_t i = 1; i < tokens.borders.size(); ++i)
    lengths.push_back(std::max<int64_t>(1, tokens.borders[i] - tokens.borders[i - 1]));
  return {tokens.length, first_rows(lengths, tokens.length)};
}

// [N, L] of stored captions without regard to drops, cut to the longest that the model takes.
at::Tensor stored_mask(const DiffusionConfig& config, const DiffusionInput& in) {
  const int64_t length = std::min(in.captions.size(1), config.caption_tokens);
  if (!config.mask_captions || !in.caption_mask.defined())
    return at::ones({in.captions.size(0), length}, at::kBool);
  return in.caption_mask.to(at::kCPU, at::kBool).narrow(1, 0, length);
}

// As at::where, with rows of `x` that are flagged replaced.
at::Tensor with_rows(const at::Tensor& x, const std::vector<bool>& flags, const at::Tensor& rows) {
  if (std::ranges::none_of(flags, [](bool flag) { return flag; })) return x;
  at::Tensor chosen = at::empty({static_cast<int64_t>(flags.size())}, at::kBool);
  for (size_t i = 0; i < flags.size(); ++i) chosen.data_ptr<bool>()[i] = flags[i];
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  return at::where(chosen.to(x.device()).view(shape), rows, x);
}

at::Tensor padded_to(const at::Tensor& x, int64_t length) {
  if (x.size(1) >= length) return x.narrow(1, 0, length);
  std::vector<int64_t> shape = x.sizes().vec();
  shape[1] = length - x.size(1);
  return at::cat({x, at::zeros(shape, x.options())}, 1);
}

}  // namespace

CaptionRows caption_rows(const DiffusionConfig& config, const Batch& batch) {
  if (config.text.vocab > 0) return encoded_rows(config, batch);
  const DiffusionInput* in = batch.diffusion.get();
  if (in == nullptr || !in->captions.defined()) return {1, at::ones({0, 1}, at::kBool)};
  const at::Tensor mask = stored_mask(config, *in);
  if (!config.mask_captions) return {mask.size(1), {}};
  const std::vector<bool> dropped = dropped_of(in, mask.size(0));
  const int64_t null_rows = config.null_caption ? config.caption_tokens : 1;
  const bool any = std::ranges::any_of(dropped, [](bool flag) { return flag; });
  const int64_t wide = any ? std::max(null_rows, mask.size(1)) : mask.size(1);
  at::Tensor keep = with_rows(padded_to(mask, wide), dropped,
                              at::arange(wide, at::kLong).lt(null_rows).unsqueeze(0))
                        .clone();
  // A caption without a token is a zero: some row must stand for it.
  keep.select(1, 0).logical_or_(keep.any(1).logical_not());
  const at::Tensor used = keep.any(0).nonzero();
  const int64_t length = used.numel() == 0 ? 1 : used.max().item<int64_t>() + 1;
  return {length, keep.narrow(1, 0, length)};
}

at::Tensor stored_captions(const DiffusionConfig& config, const Batch& batch,
                           const at::Tensor& null_caption) {
  const DiffusionInput* in = batch.diffusion.get();
  if (in == nullptr || !in->captions.defined()) {
    MM_CHECK(in == nullptr || !in->times.defined() || in->times.numel() == 0,
             "pictures without captions");
    return at::zeros({0, 1, config.caption_width}, at::kFloat);
  }
  MM_CHECK(in->captions.dim() == 3 && in->captions.size(2) == config.caption_width,
           "captions are not [N, L, {}]", config.caption_width);
  const int64_t length = caption_rows(config, batch).length;
  const at::Tensor mask = padded_to(stored_mask(config, *in), length);
  const at::Tensor kept =
      padded_to(in->captions.narrow(1, 0, std::min(in->captions.size(1), config.caption_tokens)),
                length)
          .masked_fill(mask.logical_not().unsqueeze(2).to(in->captions.device()), 0);
  const std::vector<bool> dropped = dropped_of(in, kept.size(0));
  if (!null_caption.defined())
    return with_rows(kept, dropped, at::zeros({1, 1, 1}, kept.options()));
  const at::Tensor null = padded_to(null_caption.unsqueeze(0), length);
  return with_rows(kept.to(null.scalar_type()), dropped, null);
}

CaptionTokens caption_tokens(const DiffusionConfig& config, const Batch& batch) {
  const auto n = std::max<int64_t>(1, std::ssize(batch.cu_seqlens)) - 1;
  const std::vector<bool> dropped = dropped_of(batch.diffusion.get(), n);
  CaptionTokens out{.borders = {0}};
  std::vector<int64_t> rows, positions, places, null_places, lengths;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t begin = batch.cu_seqlens[i], whole = batch.cu_seqlens[i + 1] - begin;
    const int64_t length = dropped[i] ? 0 : std::min(whole, config.caption_tokens);
    for (int64_t j = 0; j < length; ++j) {
      rows.push_back(begin + j);
      positions.push_back(j);
    }
    lengths.push_back(length);
    out.borders.push_back(out.borders.back() + length);
  }
  out.length = longest(lengths);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < lengths[i]; ++j) places.push_back(i * out.length + j);
    if (lengths[i] == 0) null_places.push_back(i * out.length);
  }
  out.rows = long_tensor(rows);
  out.positions = long_tensor(positions);
  out.places = long_tensor(places);
  out.null_places = long_tensor(null_places);
  return out;
}

Slot add_captions(Model& model, const DiffusionBuild& build, const CaptionProjection& projection) {
  const Slot out = model.add_slot("caption");
  Segment segment{.name = "captions", .out = {out}, .params = projection.params};
  if (build.captions >= 0) segment.in = {build.captions};
  if (projection.null_caption >= 0) segment.params.push_back(projection.null_caption);
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor> in) {
    const at::Tensor null =
        projection.null_caption >= 0 ? context.params.get(projection.null_caption) : at::Tensor();
    const at::Tensor captions =
        in.empty() ? stored_captions(build.config, context.batch, null) : in[0];
    return std::vector<at::Tensor>{projection.project(context.params, captions)};
  };
  segment.cost = [c = build.config](const Sizes& sizes) {
    const auto rows = static_cast<double>(sizes.tokens), h = static_cast<double>(c.hidden());
    return SegmentCost{.forward_flops = 2 * rows * h * (static_cast<double>(c.caption_input()) + h),
                       .saved_bytes = 2 * rows * (static_cast<double>(c.caption_input()) + 3 * h)};
  };
  model.blocks.push_back({"captions", Part::kTransformer, {std::move(segment)}});
  return out;
}

}  // namespace mm::model
