#include "lib/model/text_encoder.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/model/masked_attention.h"
#include "lib/model/t5_encoder.h"
#include "tests/base/temp_dir.h"
#include "tests/model/operation_check.h"
#include "tests/model/stored_tensors.h"

using namespace mm::model;
using namespace mm::model::test;
using mm::test::message_of;
using mm::test::TempDir;

namespace {

using Captions = std::vector<std::vector<int64_t>>;

const std::filesystem::path kOracles = std::filesystem::path(MM_TEST_DATA) / "oracles",
                            kText = kOracles / "text_encoders";

LoadedTextEncoder encoder(const char* name, at::ScalarType dtype = at::kFloat) {
  return {std::string(name) == "bert" ? kOracles / "text_bert/bert" : kText / name, dtype};
}

bool names(const std::string& message, const char* part) {
  return message.find(part) != std::string::npos;
}

Batch packed(const Captions& captions) {
  Batch batch;
  batch.cu_seqlens = {0};
  std::vector<int64_t> tokens;
  for (const auto& caption : captions) {
    tokens.insert(tokens.end(), caption.begin(), caption.end());
    batch.cu_seqlens.push_back(std::ssize(tokens));
  }
  batch.tokens = at::tensor(tokens, at::kLong);
  return batch;
}

}  // namespace

TEST_CASE("C55: a caption's output depends neither on the padded length nor on what stands there") {
  const Captions captions{{7, 30, 12, 9, 1}, {5, 6, 8}};
  for (const char* name : {"t5", "bert", "clip"}) {
    CAPTURE(name);
    const LoadedTextEncoder text = encoder(name);
    const bool clip = text.encoder().family == TextFamily::kClip;
    const EncodedText exact = text.encode(pad_text(captions, {}));
    for (const int64_t length : {clip ? 11 : 20, clip ? 16 : 60}) {
      for (const int64_t id : {0, 3, 44}) {
        const EncodedText padded = text.encode(pad_text(captions, {.length = length, .id = id}));
        for (int64_t row = 0; row < 2; ++row) {
          const int64_t count = std::ssize(captions[static_cast<size_t>(row)]);
          CHECK(relative(padded.hidden[row].narrow(0, 0, count),
                         exact.hidden[row].narrow(0, 0, count)) < 1e-5);
          CHECK(relative(padded.penultimate[row].narrow(0, 0, count),
                         exact.penultimate[row].narrow(0, 0, count)) < 1e-5);
        }
        if (!clip) CHECK(relative(padded.pooled, exact.pooled) < 1e-5);
      }
    }
  }
}

TEST_CASE("a caption's output does not depend on the captions beside it; an empty one is finite") {
  for (const char* name : {"t5", "bert"}) {
    const LoadedTextEncoder text = encoder(name);
    const EncodedText both = text.encode(pad_text(Captions{{4, 9, 2}, {}}, {}));
    const EncodedText alone = text.encode(pad_text(Captions{{4, 9, 2}}, {}));
    CHECK(relative(both.hidden[0], alone.hidden[0]) < 1e-5);
    CHECK(both.hidden.isfinite().all().item<bool>());
    CHECK(both.pooled[1].abs().sum().item<double>() == 0);
  }
}

TEST_CASE("blocks in a model give what the encoder alone gives, and train all of it") {
  for (const char* name : {"t5", "bert", "clip_proj"}) {
    CAPTURE(name);
    const Captions captions{{7, 30, 12, 9, 119}, {5, 6, 119}};
    const auto directory =
        std::string(name) == "bert" ? kOracles / "text_bert/bert_bare" : kText / name;
    const mm::Json config = mm::read_json_file(directory / "config.json");
    Model model;
    const TextEncoder declared = declare_text_encoder(model, config, "config.json", "text.");
    const TextSlots slots = add_text_encoder(model, declared, {});
    const SimpleParams params = lively_params(model, 5);
    const SlotValues got = eager_forward(model, params, packed(captions));
    const at::NoGradGuard no_grad;
    const EncodedText want = encode_text(declared, params, pad_text(captions, {}));
    CHECK(at::equal(got[slots.hidden], want.hidden));
    CHECK(at::equal(got[slots.penultimate], want.penultimate));
    CHECK(at::equal(got[slots.pooled], want.pooled));
    CHECK(want.pooled.size(1) == declared.pooled_width);
    const auto used = params_in_use(model);
    for (size_t i = 0; i < used.size(); ++i) {
      CHECK(model.params[i].part == Part::kTextEncoder);
      CHECK((used[i] || names(model.params[i].name, "pooler.dense")));
    }
  }
}

TEST_CASE("T5 in fp16 stays finite where its feed-forward product passes the largest fp16") {
  const TempDir directory;
  copy_changed(kText / "t5", directory.path(), [](std::vector<StoredTensor>& tensors) {
    for (StoredTensor& tensor : tensors)
      if (names(tensor.name, "wo.weight") || names(tensor.name, "wi_1")) tensor.value *= 200;
  });
  const PaddedText text = pad_text(Captions{{7, 30, 12, 9, 1}}, {});
  const EncodedText half = LoadedTextEncoder(directory.path(), at::kHalf).encode(text);
  const EncodedText full = LoadedTextEncoder(directory.path(), at::kFloat).encode(text);
  CHECK(full.penultimate.abs().max().item<double>() > 65504);
  CHECK(half.hidden.isfinite().all().item<bool>());
  CHECK(relative(half.hidden, full.hidden) < 0.02);
}

TEST_CASE("C47: T5's second copy of its table must be equal, and may stand alone") {
  const auto with_copy = [](const std::function<void(std::vector<StoredTensor>&)>& change) {
    const TempDir directory;
    copy_changed(kText / "t5", directory.path(), change);
    const LoadedTextEncoder text(directory.path(), at::kFloat);
    return text.encode(pad_text(Captions{{4, 5, 6}}, {})).hidden;
  };
  const at::Tensor want = encoder("t5").encode(pad_text(Captions{{4, 5, 6}}, {})).hidden;
  const auto add_copy = [](std::vector<StoredTensor>& tensors, double factor) {
    for (const StoredTensor& tensor : tensors) {
      if (tensor.name != "shared.weight") continue;
      const at::Tensor copy = tensor.value * factor;
      tensors.push_back({"encoder.embed_tokens.weight", copy});
      return;
    }
  };
  CHECK(at::equal(with_copy([&](auto& tensors) { add_copy(tensors, 1); }), want));
  CHECK(at::equal(with_copy([](auto& tensors) {
                    for (auto& tensor : tensors)
                      if (tensor.name == "shared.weight")
                        tensor.name = "encoder.embed_tokens.weight";
                  }),
                  want));
  CHECK(names(
      message_of<mm::DataError>([&] { with_copy([&](auto& tensors) { add_copy(tensors, 2); }); }),
      "encoder.embed_tokens.weight differs from shared.weight"));
}

TEST_CASE("names are read in the spellings that files have") {
  const auto spelled = [](const std::filesystem::path& from, const auto& spell) {
    const TempDir directory;
    copy_changed(from, directory.path(), [&](std::vector<StoredTensor>& tensors) {
      for (StoredTensor& tensor : tensors) tensor.name = spell(tensor.name);
      tensors.push_back({"embeddings.position_ids", at::zeros({1, 4}, at::kLong)});
    });
    const LoadedTextEncoder text(directory.path(), at::kFloat);
    return text.encode(pad_text(Captions{{4, 5, 6}}, {})).hidden;
  };
  const PaddedText text = pad_text(Captions{{4, 5, 6}}, {});
  const at::Tensor clip = spelled(kText / "clip", [](std::string name) {
    return name.substr(std::string("text_model.").size());
  });
  CHECK(at::equal(clip, encoder("clip").encode(text).hidden));
  const at::Tensor bert = spelled(kOracles / "text_bert/bert", [](const std::string& name) {
    const size_t norm = name.find("LayerNorm.weight");
    return "bert." + (norm == std::string::npos ? name : name.substr(0, norm) + "LayerNorm.gamma");
  });
  CHECK(at::equal(bert, encoder("bert").encode(text).hidden));
}

TEST_CASE("the old end-of-text rule takes the largest id, the new one the first end of text") {
  const PaddedText text = pad_text(Captions{{118, 5, 119, 119, 7}}, {});
  const LoadedTextEncoder old = encoder("clip");
  const EncodedText got = old.encode(text);
  CHECK(at::equal(got.pooled[0], got.hidden[0][2]));
}

TEST_CASE("captions are cut and padded as asked") {
  const PaddedText text = pad_text(Captions{{1, 2, 3, 4}, {5}}, {.length = 3, .id = 9});
  CHECK(at::equal(text.ids, at::tensor({1, 2, 3, 5, 9, 9}, at::kLong).view({2, 3})));
  CHECK(at::equal(text.mask[1], at::tensor({1, 0, 0}, at::kLong).to(at::kBool)));
  CHECK(pad_text(Batch{}, {}).ids.sizes() == at::IntArrayRef({0, 0}));
}

TEST_CASE("tokens that an encoder does not have and captions that are too long are refused") {
  const LoadedTextEncoder clip = encoder("clip");
  const auto refused = [&](const Captions& captions, const TextPadding& padding) {
    return message_of<mm::DataError>([&] { clip.encode(pad_text(captions, padding)); });
  };
  CHECK(names(refused({{1, 120}}, {}), "token 120: the text encoder's vocabulary has 120"));
  CHECK(names(refused({{1, 2}}, {.length = 17}), "17 tokens; the text encoder has 16 positions"));
}

TEST_CASE("text encoder config: what is not supported is refused by name") {
  const auto refused = [](const char* from, const char* key, const mm::Json& value) {
    mm::Json json = mm::read_json_file(kText / from / "config.json");
    json[key] = value;
    Model model;
    return message_of<mm::DataError>([&] { declare_text_encoder(model, json, "config.json", ""); });
  };
  CHECK(names(refused("t5", "feed_forward_proj", "relu"), "gated-gelu"));
  CHECK(names(refused("t5", "model_type", "umt5"), "expected clip_text_model, t5 or bert"));
  CHECK(names(refused("t5", "relative_attention_num_buckets", 6), "do not fit"));
  CHECK(names(refused("clip", "hidden_act", "relu"), "hidden_act"));
  CHECK(names(refused("clip", "num_attention_heads", 5), "no multiple of 5 heads"));
}

TEST_CASE("padded attention is softmax over kept keys with the bias added") {
  const at::Tensor mask = at::tensor({1, 1, 0}, at::kLong).to(at::kBool).unsqueeze(0);
  const at::Tensor bias = draw({1, 2, 3, 3}, at::kDouble, 9) * 3;
  const auto reference = [&](const std::vector<at::Tensor>& in) {
    const auto heads = [](const at::Tensor& x) { return x.transpose(1, 2).narrow(2, 0, 2); };
    const at::Tensor scores =
        at::matmul(in[0].transpose(1, 2), heads(in[1]).transpose(2, 3)) * 0.7 +
        in[3].narrow(3, 0, 2);
    return at::matmul(at::softmax(scores, 3), heads(in[2])).transpose(1, 2).flatten(2);
  };
  const auto ours = [&](const std::vector<at::Tensor>& in) {
    return padded_attention(in[0], in[1], in[2], {.mask = mask, .bias = in[3], .scale = 0.7});
  };
  check_same(ours, reference,
             {draw({1, 3, 2, 4}, at::kDouble, 1), draw({1, 3, 2, 4}, at::kDouble, 2),
              draw({1, 3, 2, 4}, at::kDouble, 3), bias},
             1e-13);
}
