#include "lib/model/hf_load.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <functional>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/safetensors_writer.h"
#include "tests/base/temp_dir.h"
#include "tests/model/tiny_llava.h"

using namespace mm::model;
using mm::test::message_of;
using mm::test::TempDir;

namespace {

struct Stored {
  std::string name;
  at::Tensor value;
};

void write(const TempDir& directory, const LlavaConfig& config,
           const std::vector<Stored>& tensors) {
  mm::write_file_atomic(directory.path() / "config.json", to_json(config).dump());
  std::vector<mm::ckpt::TensorSource> sources;
  for (const Stored& stored : tensors) {
    const auto type =
        stored.value.scalar_type() == at::kLong ? mm::ckpt::DType::kI64 : mm::ckpt::DType::kF32;
    sources.push_back({.name = stored.name,
                       .dtype = type,
                       .shape = {stored.value.sizes().begin(), stored.value.sizes().end()},
                       .bytes = {static_cast<const std::byte*>(stored.value.const_data_ptr()),
                                 stored.value.nbytes()}});
  }
  mm::ckpt::write_safetensors(directory.path() / "model.safetensors", sources);
}

std::vector<Stored> all_tensors(const LlavaConfig& config) {
  const Model model = build_llava(config);
  const SimpleParams params = test::lively_params(model, 7, at::kFloat);
  std::vector<Stored> tensors;
  for (size_t i = 0; i < model.params.size(); ++i) {
    tensors.push_back({model.params[i].name, params.get(static_cast<int>(i)).detach()});
  }
  return tensors;
}

LlavaConfig tied_config(bool tied) {
  LlavaConfig config = test::tiny_config();
  config.text.tied_head = tied;
  return config;
}

Stored& named(std::vector<Stored>& tensors, const std::string& name) {
  for (Stored& stored : tensors) {
    if (stored.name == name) return stored;
  }
  throw mm::InternalError("no {}", name);
}

std::string refusal(const std::function<void(std::vector<Stored>&)>& change) {
  const TempDir directory;
  auto tensors = all_tensors(test::tiny_config());
  change(tensors);
  write(directory, test::tiny_config(), tensors);
  return message_of<mm::DataError>([&] { load_llava(directory.path()); });
}

const std::string kTable = "language_model.model.embed_tokens.weight",
                  kHead = "language_model.lm_head.weight";

}  // namespace

TEST_CASE("weights come back bit for bit, whatever the spelling of their names") {
  const TempDir directory;
  auto tensors = all_tensors(test::tiny_config());
  const auto original = tensors;
  for (Stored& stored : tensors) {
    if (stored.name.starts_with("vision_tower."))
      stored.name.erase(13, std::string("vision_model.").size());
    if (stored.name.starts_with("language_model.model."))
      stored.name.erase(0, std::string("language_model.").size());
  }
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", at::ones({3})});
  write(directory, test::tiny_config(), tensors);
  const LoadedLlava loaded = load_llava(directory.path());
  REQUIRE(loaded.values.size() == original.size());
  for (size_t i = 0; i < original.size(); ++i)
    CHECK(at::equal(loaded.values[i], original[i].value));
}

TEST_CASE("C47: a tied head loads without a copy and with an equal one, another one is refused") {
  auto tensors = all_tensors(tied_config(true));
  const auto load = [&](const std::vector<Stored>& stored) {
    const TempDir directory;
    write(directory, tied_config(true), stored);
    return load_llava(directory.path());
  };
  const LoadedLlava without = load(tensors);
  auto with_copy = tensors;
  with_copy.push_back({kHead, named(tensors, kTable).value.clone()});
  const LoadedLlava with = load(with_copy);
  REQUIRE(with.values.size() == without.values.size());
  for (size_t i = 0; i < with.values.size(); ++i)
    CHECK(at::equal(with.values[i], without.values[i]));
  with_copy.back().value = with_copy.back().value + 1;
  const std::string message = message_of<mm::DataError>([&] { load(with_copy); });
  CHECK(message.find("tie_word_embeddings is true, but " + kHead + " differs") !=
        std::string::npos);
}

TEST_CASE("C47: without the tie, head and table stay apart, and a missing head is an error") {
  const TempDir directory;
  auto tensors = all_tensors(test::tiny_config());
  write(directory, test::tiny_config(), tensors);
  const LoadedLlava loaded = load_llava(directory.path());
  CHECK(!at::equal(loaded.values[find_param(loaded.model, kHead)],
                   loaded.values[find_param(loaded.model, kTable)]));
  const std::string message = refusal(
      [](auto& all) { std::erase_if(all, [](const Stored& s) { return s.name == kHead; }); });
  CHECK(message.find("no tensor for 1 of") != std::string::npos);
  CHECK(message.find(kHead) != std::string::npos);
}

TEST_CASE(
    "C47: where config.json ties at one level alone, an absent head is tied, a stored one kept") {
  for (const bool outer : {false, true}) {
    CAPTURE(outer);
    auto tensors = all_tensors(tied_config(true));
    const TempDir directory;
    write(directory, tied_config(true), tensors);
    mm::Json json = to_json(tied_config(true));
    json["tie_word_embeddings"] = outer;
    json["text_config"]["tie_word_embeddings"] = !outer;
    mm::write_file_atomic(directory.path() / "config.json", json.dump());
    CHECK(load_llava(directory.path()).config.text.tied_head);
    if (outer) continue;
    tensors.push_back({kHead, named(tensors, kTable).value + 1});
    write(directory, tied_config(true), tensors);
    mm::write_file_atomic(directory.path() / "config.json", json.dump());
    const LoadedLlava apart = load_llava(directory.path());
    CHECK_FALSE(apart.config.text.tied_head);
    CHECK(at::equal(apart.values[find_param(apart.model, kHead)], tensors.back().value));
  }
}

TEST_CASE("a tensor of another shape or kind, one too many, or one twice is refused by name") {
  CHECK(refusal([](auto& all) {
          named(all, kTable).value = at::ones({50, 23});
        }).find("has shape [50, 23], config.json asks for [50, 24]") != std::string::npos);
  CHECK(refusal([](auto& all) {
          named(all, kTable).value = at::ones({50, 24}, at::kLong);
        }).find("holds I64") != std::string::npos);
  CHECK(refusal([](auto& all) {
          all.push_back({"image_newline", at::ones({24})});
        }).find("first image_newline") != std::string::npos);
  CHECK(refusal([](auto& all) {
          all.push_back({"lm_head.weight", at::ones({50, 24})});
        }).find("are both " + kHead) != std::string::npos);
}
