#include "lib/run/encode_unit.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <map>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/thread_pool.h"
#include "lib/ckpt/safetensors_writer.h"
#include "lib/run/encoded_unit.h"

namespace mm::run {
namespace {

/// What became of one row.
struct EncodedRow {
  std::string absent;  ///< why it could not be read; else empty
  int32_t height = 0, width = 0;
  at::Tensor latents;          ///< [2C or C, h, w]
  at::Tensor caption, pooled;  ///< [tokens, D], [P]
  uint64_t tokens_sum = 0;
};

at::ScalarType stored_type(const EncodedSettings& settings) {
  if (settings.dtype == "bf16") return at::kBFloat16;
  return settings.dtype == "fp16" ? at::kHalf : at::kFloat;
}

ckpt::DType file_type(at::ScalarType type) {
  if (type == at::kLong) return ckpt::DType::kI64;
  if (type == at::kBFloat16) return ckpt::DType::kBF16;
  return type == at::kHalf ? ckpt::DType::kF16 : ckpt::DType::kF32;
}

void require_finite(const at::Tensor& made, const char* what, const UnitJob& job, uint64_t row) {
  if (made.isfinite().all().item<bool>()) return;
  throw DataError("row {} ({}): its {} not finite in {}; use --dtype fp32", row,
                  job.dataset.key(row), what, job.settings.dtype);
}

void encode_picture(const UnitJob& job, uint64_t row, const data::Sample& sample, EncodedRow& out) {
  const data::PictureLayout layout = job.dataset.pictures();
  out.height = sample.grids.empty() ? layout.height : sample.grids[0].height;
  out.width = sample.grids.empty() ? layout.width : sample.grids[0].width;
  const int64_t bytes = int64_t{3} * out.height * out.width;
  if (bytes == 0 || std::ssize(sample.pixels) != bytes)
    throw DataError("row {} has {} bytes of pixels, expected one picture of {} x {}", row,
                    sample.pixels.size(), out.width, out.height);
  const at::Tensor pixels =
      at::from_blob(const_cast<uint8_t*>(sample.pixels.data()), {1, out.height, out.width, 3},
                    at::TensorOptions().dtype(at::kByte));
  const at::Tensor picture = pixels.permute({0, 3, 1, 2}).to(at::kFloat).div(127.5).sub(1);
  const at::Tensor both = mean_and_deviation(*job.encoders.vae, picture, 0)[0];
  const at::Tensor kept = job.settings.mean_only ? both.narrow(0, 0, job.settings.channels) : both;
  out.latents = kept.to(stored_type(job.settings)).contiguous();
  require_finite(out.latents, "latents are", job, row);
}

void encode_caption(const UnitJob& job, uint64_t row, const data::Sample& sample, EncodedRow& out) {
  const CaptionEncoders::States text = job.encoders.text->encode({sample.text.tokens});
  const at::ScalarType type = stored_type(job.settings);
  out.caption = text.hidden[0].to(type).contiguous();
  out.pooled = text.pooled[0].to(type).contiguous();
  require_finite(out.caption, "caption's states are", job, row);
  require_finite(out.pooled, "pooled caption is", job, row);
}

/// What stands in the place of a row that could not be read.
void leave_out(const UnitJob& job, const Failure& failure, EncodedRow& out) {
  out.absent = failure.message;
  if (!job.encoders.text) return;
  const at::ScalarType type = stored_type(job.settings);
  out.caption = at::zeros({0, job.settings.text_width}, type);
  out.pooled = at::zeros({job.settings.pooled_width}, type);
}

std::vector<EncodedRow> encode_rows(const UnitJob& job) {
  std::vector<EncodedRow> rows(job.count);
  parallel_for(job.count, job.threads, [&](size_t i) {
    at::set_num_threads(1);  // of this thread: sums come in one order, however many there are
    const at::NoGradGuard no_grad;
    const uint64_t row = job.first + i;
    const Result<data::Sample> sample = job.dataset.read(row);
    if (!sample) return leave_out(job, sample.failure(), rows[i]);
    if (job.encoders.vae) encode_picture(job, row, *sample, rows[i]);
    if (job.encoders.text) encode_caption(job, row, *sample, rows[i]);
    rows[i].tokens_sum = xxh3_64(std::as_bytes(std::span(sample->text.tokens)));
  });
  return rows;
}

using Tensors = std::map<std::string, at::Tensor>;

void add_latents(const UnitJob& job, const std::vector<EncodedRow>& rows, Tensors& out) {
  std::map<std::string, std::pair<std::vector<int64_t>, std::vector<at::Tensor>>> by_size;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].absent.empty()) continue;
    auto& [numbers, latents] = by_size[fmt::format("latents.{}x{}", rows[i].height, rows[i].width)];
    numbers.push_back(static_cast<int64_t>(job.first + i));
    latents.push_back(rows[i].latents);
  }
  for (const auto& [name, both] : by_size) {
    out[name] = at::stack(both.second);
    out[name + ".rows"] = at::tensor(both.first, at::kLong);
  }
}

void add_captions(const std::vector<EncodedRow>& rows, Tensors& out) {
  std::vector<at::Tensor> captions, pooled;
  std::vector<int64_t> ends;
  for (const EncodedRow& row : rows) {
    captions.push_back(row.caption);
    pooled.push_back(row.pooled);
    ends.push_back((ends.empty() ? 0 : ends.back()) + row.caption.size(0));
  }
  out["captions"] = at::cat(captions);
  out["pooled"] = at::stack(pooled);
  out["captions.ends"] = at::tensor(ends, at::kLong);
}

uint64_t sum_of(const at::Tensor& stored) {
  if (!stored.defined()) return 0;
  return xxh3_64({static_cast<const std::byte*>(stored.const_data_ptr()), stored.nbytes()});
}

void add_sums(const std::vector<EncodedRow>& rows, Tensors& out) {
  at::Tensor& sums = out["sums"] = at::empty({std::ssize(rows), int64_t{kUnitParts}}, at::kLong);
  auto* at = reinterpret_cast<uint64_t*>(sums.mutable_data_ptr<int64_t>());
  for (const EncodedRow& row : rows) {
    for (const uint64_t sum :
         {sum_of(row.latents), sum_of(row.caption), sum_of(row.pooled), row.tokens_sum})
      *at++ = sum;
  }
}

std::vector<AbsentRow> add_absent(const UnitJob& job, const std::vector<EncodedRow>& rows,
                                  Tensors& out) {
  std::vector<AbsentRow> absent;
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].absent.empty()) continue;
    absent.push_back({job.first + i, rows[i].absent});
    numbers.push_back(static_cast<int64_t>(job.first + i));
  }
  if (!numbers.empty()) out["absent"] = at::tensor(numbers, at::kLong);
  return absent;
}

}  // namespace

std::vector<AbsentRow> encode_unit(const UnitJob& job, const std::filesystem::path& path,
                                   const ckpt::Metadata& metadata) {
  const std::vector<EncodedRow> rows = encode_rows(job);
  Tensors tensors;
  if (job.encoders.vae) add_latents(job, rows, tensors);
  if (job.encoders.text) add_captions(rows, tensors);
  add_sums(rows, tensors);
  std::vector<AbsentRow> absent = add_absent(job, rows, tensors);
  std::vector<ckpt::TensorSource> sources;
  for (const auto& [name, tensor] : tensors)
    sources.push_back(
        {.name = name,
         .dtype = file_type(tensor.scalar_type()),
         .shape = {tensor.sizes().begin(), tensor.sizes().end()},
         .bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
  ckpt::write_safetensors(path, sources, metadata);
  return absent;
}

}  // namespace mm::run
