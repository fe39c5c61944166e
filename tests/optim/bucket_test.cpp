#include "lib/optim/bucket.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/optim/toy_params.h"

namespace mm::optim {
namespace {

std::vector<bool> all_train() { return std::vector<bool>(toy_model().params.size(), true); }

}  // namespace

TEST_CASE(
    "backward order goes from the last block to the first, a tied weight counts from its first "
    "use") {
  // Blocks: vision (patch, bias), projector, embed, layer (norm), head (head, embed). Nobody reads
  // "unused".
  CHECK(backward_order(toy_model(), all_train()) ==
        std::vector<model::ParamId>{kHead, kNorm, kEmbed, kProjector, kPatchBias, kPatch, kUnused});
}

TEST_CASE(
    "each trainable parameter lies in exactly one bucket, whatever their size, and no bucket mixes "
    "parts") {
  const model::Model model = toy_model();
  for (const int64_t bytes : {1, 40, 100, 1 << 20}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      std::vector<bool> trainable = all_train();
      trainable[kNorm] = false;
      std::set<model::ParamId> seen;
      for (const Bucket& bucket :
           make_buckets(model, trainable, {.bucket_bytes = bytes, .accumulate = dtype})) {
        int64_t elements = 0;
        for (size_t i = 0; i < bucket.params.size(); ++i) {
          CHECK(seen.insert(bucket.params[i]).second);
          CHECK(bucket.starts[i] == elements);
          const model::ParamSpec& spec = model.params[static_cast<size_t>(bucket.params[i])];
          CHECK((spec.part == bucket.part));
          elements += c10::multiply_integers(spec.shape);
        }
        CHECK(bucket.flat.numel() == elements);
        CHECK((bucket.flat.scalar_type() == dtype));
      }
      CHECK(seen.size() == model.params.size() - 1);
      CHECK_FALSE(seen.contains(kNorm));
    }
  }
}

TEST_CASE("a bucket closes once it has its bytes, large ones end only where the part changes") {
  const model::Model model = toy_model();
  CHECK(make_buckets(model, all_train(), {.bucket_bytes = 1}).size() == model.params.size());
  CHECK(make_buckets(model, all_train(), {.bucket_bytes = 1 << 20}).size() == 3);
  const std::vector<Bucket> buckets = make_buckets(model, all_train(), {.bucket_bytes = 9 * 4});
  CHECK(buckets[0].params == std::vector<model::ParamId>{kHead, kNorm});  // 6 + 3 elements
  CHECK(buckets[1].params == std::vector<model::ParamId>{kEmbed});
}

TEST_CASE("nothing trains: no buckets") {
  CHECK(make_buckets(toy_model(), std::vector<bool>(toy_model().params.size(), false), {}).empty());
}

}  // namespace mm::optim
