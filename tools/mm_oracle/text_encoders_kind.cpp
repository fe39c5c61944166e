#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/t5_encoder.h"
#include "lib/model/text_encoder.h"
#include "tools/mm_oracle/checks.h"
#include "tools/mm_oracle/kinds.h"

namespace mm::oracle {
namespace {

constexpr double kTensorTolerance = 1e-5, kElementTolerance = 2e-5;

void check_tensor(Report& report, const std::string& name, const at::Tensor& got,
                  const at::Tensor& want) {
  report.number(name, relative_error(got, want), kTensorTolerance, "rel");
  report.number(name + " (largest element)", largest_error(got, want), kElementTolerance, "max");
}

/// The encoder in the folder's directory `name` on its input ids.
model::EncodedText run(Folder& folder, const std::string& name, const at::Tensor& mask) {
  const model::LoadedTextEncoder encoder(folder.directory() / name, at::kFloat);
  return encoder.encode({folder.tensor(name + "/input_ids"), mask});
}

// Without a mask: CLIP's padding is context too, and causal attention keeps it from what precedes.
void check_clip(Folder& folder, const std::string& name, const char* pooled, Report& report) {
  const at::Tensor ids = folder.tensor(name + "/input_ids");
  const model::EncodedText got = run(folder, name, at::ones_like(ids, at::kBool));
  check_tensor(report, name + "/last_hidden_state", got.hidden,
               folder.tensor(name + "/last_hidden_state"));
  check_tensor(report, name + "/hidden_state_minus_2", got.penultimate,
               folder.tensor(name + "/hidden_state_minus_2"));
  check_tensor(report, name + "/" + pooled, got.pooled, folder.tensor(name + "/" + pooled));
}

/// Only where the mask is 1.
void check_masked(Folder& folder, const std::string& name, Report& report) {
  const at::Tensor mask = folder.tensor(name + "/attention_mask").to(at::kBool);
  const model::EncodedText got = run(folder, name, mask);
  const auto kept = [&](const at::Tensor& x) {
    return x.flatten(0, 1).index_select(0, mask.flatten().nonzero().flatten());
  };
  check_tensor(report, name + "/last_hidden_state", kept(got.hidden),
               kept(folder.tensor(name + "/last_hidden_state")));
  if (folder.has_tensor(name + "/mean_pooled"))
    check_tensor(report, name + "/mean_pooled", got.pooled, folder.tensor(name + "/mean_pooled"));
}

void check_buckets(Folder& folder, Report& report) {
  const auto relative = folder.numbers("t5_position_buckets/relative_position"),
             bucket = folder.numbers("t5_position_buckets/bucket");
  const at::Tensor got =
      model::t5_position_buckets(at::tensor(relative, at::kDouble).to(at::kLong), 32, 128);
  report.exact("t5_position_buckets", at::equal(got, at::tensor(bucket, at::kDouble).to(at::kLong)),
               "others here");
}

}  // namespace

void check_text_encoders(Folder& folder, Report& report) {
  folder.set_aside({"seed", "shape", "measured"});
  if (folder.has_tensor("clip/input_ids")) {
    check_clip(folder, "clip", "pooler_output", report);
    check_clip(folder, "clip_proj", "text_embeds", report);
  }
  if (folder.has_tensor("t5/input_ids")) {
    check_masked(folder, "t5", report);
    check_buckets(folder, report);
  }
  for (const char* name : {"bert", "bert_bare"})
    if (folder.has_tensor(std::string(name) + "/input_ids")) check_masked(folder, name, report);
}

}  // namespace mm::oracle
