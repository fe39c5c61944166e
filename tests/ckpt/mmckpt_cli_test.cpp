#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/ckpt/layout.h"
#include "lib/ckpt/peft.h"
#include "tests/ckpt/raw_safetensors.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_directories.h"
#include "tests/ckpt/two_rank_save.h"

// The program itself: streams and exit codes.

using mm::ckpt::test::save_two_ranks;
using mm::ckpt::test::TempDir;

namespace {

struct Run {
  int exit_code;
  std::string output;
};

// `stream` "2>&1 >/dev/null" shows stderr alone.
Run mmckpt(const std::string& arguments, const std::string& stream = "2>/dev/null") {
  FILE* pipe =
      ::popen((std::string(MM_BIN_DIR "/mmckpt ") + arguments + " " + stream).c_str(), "r");
  REQUIRE(pipe != nullptr);
  Run run{0, {}};
  char part[4096];
  while (const size_t got = std::fread(part, 1, sizeof(part), pipe)) run.output.append(part, got);
  run.exit_code = WEXITSTATUS(::pclose(pipe));
  return run;
}
const std::string kStderr = "2>&1 >/dev/null";

}  // namespace

TEST_CASE(
    "mmckpt verify: exit 0 with one line for what is whole, 65 with the problem for what is not") {
  const TempDir dir;
  const auto step = save_two_ranks(dir / "ckpt", 5);
  const Run good = mmckpt("verify " + dir.path().string());
  CHECK(good.exit_code == 0);
  CHECK(good.output.starts_with("ok      " + step.string() +
                                "  2 files  4 tensors  1.5 MiB compared with their checksums\n"));
  std::filesystem::resize_file(step / mm::ckpt::shard_name(1), 100);
  const Run bad = mmckpt("verify --quick " + step.string());
  CHECK(bad.exit_code == 65);
  CHECK(bad.output.starts_with("BROKEN  " + step.string()));
  CHECK(bad.output.find("shard-rank-00001.safetensors: truncated by") != std::string::npos);
  CHECK(mm::Json::parse(mmckpt("verify --json " + step.string()).output)["ok"] == false);
}

TEST_CASE("mmckpt inspect: text and JSON on stdout, a refusal as one line on stderr with 65") {
  const TempDir dir;
  save_two_ranks(dir / "ckpt", 5);
  CHECK(mmckpt("inspect " + dir.path().string()).output.find("total  4 tensors") !=
        std::string::npos);
  CHECK(mm::Json::parse(
            mmckpt("inspect --json " + dir.path().string()).output)["checkpoint"]["step"] == 5);
  mm::ckpt::test::write_raw(dir / "x.safetensors", "1234567");
  const Run bad = mmckpt("inspect " + (dir / "x.safetensors").string(), kStderr);
  CHECK(bad.exit_code == 65);
  CHECK(bad.output ==
        "mmckpt: error: " + (dir / "x.safetensors").string() +
            ": 7 bytes are too few for a safetensors file: 8 bytes of header length expected\n");
}

TEST_CASE("mmckpt: usage errors are 2, an absent path is 74, help is 0") {
  CHECK(mmckpt("").exit_code == 2);
  CHECK(mmckpt("verify").exit_code == 2);
  CHECK(mmckpt("verify --nope /").exit_code == 2);
  CHECK(mmckpt("inspect /no/such/path").exit_code == 74);
  const Run help = mmckpt("verify --help");
  CHECK(help.exit_code == 0);
  CHECK(help.output.find("Examples:") != std::string::npos);
}

TEST_CASE("mmckpt convert: one line or one JSON object on stdout; what exists already is refused") {
  const TempDir dir;
  std::filesystem::create_directory(dir / "in");
  const auto values = mm::ckpt::test::floats({1, 2});
  const std::vector<mm::ckpt::TensorSource> tensors = {
      {"w", mm::ckpt::DType::kF32, {2}, values, {}}};
  mm::ckpt::write_safetensors(dir / "in/model.safetensors", tensors);
  mm::write_file_atomic(dir / "in/config.json", R"({"model_type": "x"})");
  const std::string in = (dir / "in").string(), own = (dir / "own").string(),
                    out = (dir / "out").string();
  const Run there = mmckpt("convert " + in + " " + own + " --to own");
  CHECK(there.exit_code == 0);
  CHECK(there.output == own + ": 1 tensors, 8 B in 1 file\n");
  const Run back = mmckpt("convert " + own + " " + out + " --dtype bf16 --json");
  CHECK(back.exit_code == 0);
  CHECK(mm::Json::parse(back.output) == mm::Json{{"schema", 1},
                                                 {"out", out},
                                                 {"tensors", 1},
                                                 {"files", 1},
                                                 {"bytes", 4},
                                                 {"notes", mm::Json::array()}});
  const Run again = mmckpt("convert " + in + " " + out, kStderr);
  CHECK(again.exit_code == 2);
  CHECK(again.output ==
        "mmckpt: error: " + out + ": exists already; choose another name or remove it\n");
}

TEST_CASE("mmckpt join: one line or one JSON object on stdout; refusals are one line with a code") {
  const TempDir dir;
  const std::string vision = mm::ckpt::test::write_clip(dir / "clip").string(),
                    language = mm::ckpt::test::write_language(dir / "llama", 9).string(),
                    out = (dir / "out").string(), both = "join " + vision + " " + language + " ";
  const Run text = mmckpt(both + out);
  CHECK(text.exit_code == 0);
  CHECK(text.output.starts_with(out + ": "));
  CHECK(text.output.ends_with("in 1 file, image token 9, no projector\n"));
  CHECK(mmckpt(both + out + "2", kStderr).output.find("note: no projector in it: ") !=
        std::string::npos);
  const Run json = mmckpt(both + out + "3 --feature-layer -1 --dtype fp16 --json");
  CHECK(json.exit_code == 0);
  const mm::Json object = mm::Json::parse(json.output);
  CHECK(object["schema"] == 1);
  CHECK(object["image_token"] == 9);
  CHECK(object["left_out"] == 3);
  CHECK(object["projector"] == false);
  const auto refused = [&](const std::string& arguments, int code, const std::string& message) {
    const Run run = mmckpt(arguments, kStderr);
    CHECK(run.exit_code == code);
    CHECK(run.output.starts_with("mmckpt: error: "));
    CHECK_MESSAGE(run.output.find(message) != std::string::npos, run.output);
    CHECK(std::count(run.output.begin(), run.output.end(), '\n') == 1);
  };
  refused(both + out, 2, "exists already");
  refused(both + out + "4 --feature-layer 7", 2, "outside a tower of 2 layers");
  refused("join " + language + " " + vision + " " + out + "4", 65, "model_type is llama");
  refused("join " + vision + "x " + language + " " + out + "4", 74, "no such file");
  std::filesystem::remove(dir / "clip/config.json");
  refused(both + out + "4", 74, "config.json");
  CHECK(mmckpt("join " + vision).exit_code == 2);
}

TEST_CASE("mmckpt merge, inspect of an adapter, convert --to peft: text, JSON, refusals") {
  using mm::ckpt::DType;
  const TempDir dir;
  const std::string layer = "language_model.model.layers.0.self_attn.q_proj";
  const auto weight = mm::ckpt::test::floats({1, 2, 3, 4, 5, 6}),
             a = mm::ckpt::test::floats({1, 0, 1}), b = mm::ckpt::test::floats({1, -1});
  const auto write = [&](const std::string& name, const std::string& file, const mm::Json& config,
                         const std::vector<mm::ckpt::TensorSource>& tensors) {
    std::filesystem::create_directory(dir / name);
    mm::ckpt::write_safetensors(dir / name / file, tensors);
    const char* json = file.starts_with("adapter") ? "adapter_config.json" : "config.json";
    mm::write_file_atomic(dir / name / json, config.dump());
    return (dir / name).string();
  };
  const std::string base = write(
      "base", "model.safetensors",
      {{"model_type", "llava"}, {"text_config", {{"vocab_size", 8}}}, {"image_token_index", 7}},
      {{layer + ".weight", DType::kF32, {2, 3}, weight, {}}});
  const std::string adapter =
      write("adapter", "adapter_model.safetensors",
            mm::ckpt::peft_config({1, 2}, {"base", {"q_proj"}, {}}),
            {{mm::ckpt::peft_name(layer + ".lora_A.weight"), DType::kF32, {1, 3}, a, {}},
             {mm::ckpt::peft_name(layer + ".lora_B.weight"), DType::kF32, {2, 1}, b, {}}});
  const std::string out = (dir / "out").string(), merge = "merge " + base + " " + adapter + " ";
  const Run text = mmckpt(merge + out);
  CHECK(text.exit_code == 0);
  CHECK(text.output == out + ": 1 tensors, 24 B in 1 file\n");
  const Run json = mmckpt(merge + out + "2 --json");
  CHECK(json.exit_code == 0);
  CHECK(mm::Json::parse(json.output)["tensors"] == 1);
  CHECK(mmckpt("inspect " + adapter).output.find("rank 1") != std::string::npos);
  const Run again = mmckpt(merge + out, kStderr);
  CHECK(again.exit_code == 2);
  CHECK(again.output ==
        "mmckpt: error: " + out + ": exists already; choose another name or remove it\n");
  CHECK(mmckpt("merge " + base + " " + base + " " + out + "3").exit_code != 0);
  const Run none = mmckpt("convert " + base + " " + out + "4 --to peft", kStderr);
  CHECK(none.exit_code != 0);
  CHECK(std::count(none.output.begin(), none.output.end(), '\n') == 1);
}
