#include "lib/ckpt/hf_index.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/ckpt/safetensors_writer.h"
#include "tests/ckpt/raw_safetensors.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;
using mm::ckpt::test::filled;
using mm::ckpt::test::TempDir;
using mm::ckpt::test::write_raw;

namespace {

constexpr const char* kIndex = "model.safetensors.index.json";

void write_file_of(const std::filesystem::path& path, std::vector<std::string> names) {
  const auto bytes = filled(8, 1);
  std::vector<TensorSource> tensors;
  for (const std::string& name : names) tensors.push_back({name, DType::kF32, {2}, bytes, {}});
  write_safetensors(path, tensors);
}

// Two files with a, b and c, and their index.
void write_good(const TempDir& dir) {
  write_file_of(dir / "model-00001-of-00002.safetensors", {"a", "b"});
  write_file_of(dir / "model-00002-of-00002.safetensors", {"c"});
  write_raw(dir / kIndex,
            R"({"metadata":{"total_size":24},"weight_map":{"a":"model-00001-of-00002.safetensors",
    "b":"model-00001-of-00002.safetensors","c":"model-00002-of-00002.safetensors"}})");
}

void refuse(const TempDir& dir, const char* message) {
  CHECK_THROWS_WITH_AS(HfWeights::open(dir.path()), doctest::Contains(message), mm::DataError);
}

void refuse_map(const std::string& weight_map, const char* message) {
  const TempDir dir;
  write_good(dir);
  write_raw(dir / kIndex, "{\"weight_map\":" + weight_map + "}");
  refuse(dir, message);
}

}  // namespace

TEST_CASE("hf index: one map over all files of a directory") {
  const TempDir dir;
  write_good(dir);
  CHECK(HfWeights::looks_like(dir.path()));
  HfWeights weights = HfWeights::open(dir.path());
  const HfWeights moved = std::move(weights);
  CHECK(moved.files().size() == 2);
  CHECK(moved.tensors().size() == 3);
  CHECK(moved.tensor_bytes() == 24);
  CHECK(moved.notes().empty());
  CHECK(moved.at("c").read() == filled(8, 1));
  CHECK(moved.find("d") == nullptr);
  CHECK_THROWS_WITH_AS(moved.at("d"), doctest::Contains("no tensor 'd'"), mm::DataError);
}

TEST_CASE(
    "hf index: a single file needs no index, diffusers' names are known, nothing is an error") {
  const TempDir dir;
  CHECK_FALSE(HfWeights::looks_like(dir.path()));
  refuse(dir, "no safetensors weights in the directory, expected model.safetensors");
  write_raw(dir / "diffusion_pytorch_model.bin", "PK");
  refuse(dir, "; 'diffusion_pytorch_model.bin' is not read, save the model as safetensors");
  CHECK_FALSE(HfWeights::looks_like(dir.path()));
  write_file_of(dir / "diffusion_pytorch_model.safetensors", {"x"});
  CHECK(HfWeights::open(dir.path()).tensors().size() == 1);
  write_file_of(dir / "model.safetensors", {"a", "b"});
  CHECK(HfWeights::open(dir.path()).tensors().size() == 2);
}

TEST_CASE("hf index: files and tensors that do not fit the map are refused") {
  const std::string f1 = "\"model-00001-of-00002.safetensors\"",
                    f2 = "\"model-00002-of-00002.safetensors\"";
  refuse_map("{}", "weight_map is empty");
  refuse_map("[]", "an object with \"weight_map\" expected");
  refuse_map("{\"a\":1}", "tensor 'a': a file name expected");
  refuse_map("{\"a\":" + f1 + ",\"a\":" + f1 + "}", "appears twice");
  refuse_map("{\"a\":" + f1 + ",\"b\":" + f1 + "}",
             "names 1 files, but 'model-00001-of-00002.safetensors' says that there are 2");
  refuse_map("{\"a\":" + f1 + ",\"b\":" + f2 + ",\"c\":" + f2 + "}",
             "tensor 'b' is not in 'model-00002");
  refuse_map("{\"a\":" + f1 + ",\"b\":" + f1 + ",\"c\":" + f2 + ",\"d\":" + f2 + "}",
             "tensor 'd' is not in");
  refuse_map("{\"a\":" + f1 + ",\"c\":" + f2 + "}", "tensor 'b' of");
  refuse_map("{\"a\":\"/etc/passwd\"}", "does not stay inside");
  refuse_map("{\"a\":\"../model.safetensors\"}", "does not stay inside");
  refuse_map("{\"a\":\"x/../../y\"}", "does not stay inside");
  refuse_map("{\"a\":\"\"}", "does not stay inside");
  refuse_map("{\"a\":\"x\\u0000y\"}", "does not stay inside");
  refuse_map("{\"a\":\".\"}", "missing or not a file");
  refuse_map("{\"a\":\"absent.safetensors\"}",
             "'absent.safetensors' is named there, but is missing");
}

TEST_CASE("hf index: a tensor in two files is refused") {
  const TempDir dir;
  write_good(dir);
  write_file_of(dir / "model-00002-of-00002.safetensors", {"c", "a"});
  refuse(dir, "tensor 'a' is also in");
}

TEST_CASE("hf index: odd but harmless things become notes") {
  const TempDir dir;
  write_good(dir);
  write_file_of(dir / "model-00003-of-00003.safetensors", {"stray"});
  write_raw(dir / "config.json", R"({"torch_dtype":"bfloat16"})");
  std::string index = mm::read_file(dir / kIndex);
  write_raw(dir / kIndex, index.replace(index.find("24"), 2, "25.0"));
  const HfWeights weights = HfWeights::open(dir.path());
  REQUIRE(weights.notes().size() == 3);
  CHECK(weights.notes()[0].ends_with("total_size is 25, tensors have 24 bytes"));
  CHECK(weights.notes()[1].ends_with(
      "model-00003-of-00003.safetensors: not named in the index, ignored"));
  CHECK(weights.notes()[2].ends_with("torch_dtype is bfloat16, 3 of 3 tensors have another dtype"));
}

TEST_CASE("hf index: files may be links, as in a hub cache") {
  const TempDir dir, blobs;
  write_file_of(blobs / "blob", {"a"});
  std::filesystem::create_symlink(blobs / "blob", dir / "model.safetensors");
  CHECK(HfWeights::open(dir.path()).tensors().size() == 1);
}
