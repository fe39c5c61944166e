#include "lib/model/splice.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/llama.h"
#include "lib/model/rows.h"

namespace mm::model {
namespace {

at::Tensor embed_and_splice(const at::Tensor& table, const Batch& batch,
                            const at::Tensor& features) {
  const at::Tensor text = at::embedding(table, batch.tokens);
  MM_CHECK(features.size(0) == batch.image_token_index.size(0),
           "{} picture features for {} placeholders", features.size(0),
           batch.image_token_index.size(0));
  return replace_rows(text, batch.image_token_index, features);
}

}  // namespace

void add_spliced_decoder(Model& model, const TextConfig& config, const std::string& prefix,
                         Slot features) {
  const ParamId table = declare_embedding_table(model, config, prefix);
  const Slot x = model.add_slot("hidden.0");
  Segment splice{.name = "language.embeddings", .in = {features}, .out = {x}, .params = {table}};
  splice.forward = [table](const SegmentContext& context, std::span<const at::Tensor> in) {
    return std::vector<at::Tensor>{
        embed_and_splice(context.params.get(table), context.batch, in[0])};
  };
  splice.cost = [](const Sizes&) { return SegmentCost{}; };
  model.blocks.push_back({"language.embeddings", Part::kLanguage, {std::move(splice)}});
  add_llama(model, config, prefix, x, table);
}

}  // namespace mm::model
