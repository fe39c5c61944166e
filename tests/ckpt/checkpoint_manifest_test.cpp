#include "lib/ckpt/checkpoint_manifest.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"

using namespace mm::ckpt;

namespace {

Manifest sample() {
  Manifest manifest;
  manifest.save_id = std::string(32, 'a');
  manifest.previous_save_id = std::string(32, '0');
  manifest.step = 1200;
  manifest.world_size = 2;
  const FileChecksums sums{kBlockBytes + 1, {0xDEADBEEF, 1}, std::string(32, 'f')};
  manifest.files = {{"s0", sums}, {"s1", sums}};
  manifest.tensors = {{"norm", DType::kF32, {}, {{0, "norm", {{}, {}}}}},
                      {"w",
                       DType::kBF16,
                       {4, 6},
                       {{0, "w@0,0", {{0, 0}, {4, 3}}}, {1, "w@0,3", {{0, 3}, {4, 3}}}}}};
  manifest.state = {{"rng", "philox"}, {"plan", {{"step", 7}}}};
  return manifest;
}

// The sample's text with one part replaced.
std::string with(std::string_view from, std::string_view to) {
  std::string text = encode_manifest(sample());
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void refuse(std::string_view text, const char* message) {
  CHECK_THROWS_WITH_AS(decode_manifest(text, "manifest.json"), doctest::Contains(message),
                       mm::DataError);
}

}  // namespace

TEST_CASE("manifest: text and back, the same bytes each time") {
  const std::string text = encode_manifest(sample());
  const Manifest back = decode_manifest(text, "m");
  CHECK(encode_manifest(back) == text);
  CHECK(back.files[1].checksums == sample().files[1].checksums);
  CHECK(back.tensors[1].pieces[1].box == ElementBox{{0, 3}, {4, 3}});
  CHECK(back.tensors[0].pieces[0].tensor == "norm");
  CHECK(back.state == sample().state);
}

TEST_CASE("F31: a newer format version is refused with the version of mmkit that it needs") {
  std::string text = with("\"version\":1", "\"version\":2");
  text.replace(text.find("0.1.0"), 5, "0.9.0");
  refuse(text,
         "manifest.json: format version 2 is newer than 1, the newest that this mmkit reads; use "
         "mmkit '0.9.0' or newer");
  refuse(with("\"version\":1", "\"version\":0"), "1 or more expected");
  refuse(with("mmkit-checkpoint", "other"), "\"format\": \"mmkit-checkpoint\" expected");
}

TEST_CASE("manifest: malformed members are refused, naming the place") {
  refuse("", "the file is empty");
  refuse("[]", "an object expected");
  refuse("{\"format\":", "invalid JSON");
  refuse(with("\"step\":1200,", ""), "\"step\": is missing");
  refuse(with("\"step\":1200", "\"step\":-1"), "\"step\": non-negative integer expected");
  refuse(with(std::string(32, 'a'), "xyz"), "\"save_id\": 32 hexadecimal digits expected");
  refuse(with("\"file\":\"s0\"", "\"file\":\"../s0\""),
         "files[0]: \"file\": a file name without path expected");
  refuse(with("\"file\":\"s1\"", "\"file\":\"s0\""), "file 's0' stands twice");
  refuse(with("deadbeef", "deadbee"), "8 hexadecimal digits for each of 2 blocks expected");
  refuse(with("deadbeef", "DEADBEEF"), "8 hexadecimal digits");
  refuse(with("\"bytes\":1048577", "\"bytes\":18446744073709551615"),
         "for each of 17592186044416 blocks");
  refuse(with("\"dtype\":\"BF16\"", "\"dtype\":\"bf16\""), "tensors[1]: \"dtype\": unknown");
  refuse(with("[4,6]", "[4,18446744073709551615]"), "does not fit 64 bits");
  refuse(with("\"file\":1", "\"file\":2"), "index below 2 expected");
  refuse(with("\"name\":\"w\"", "\"name\":\"norm\""), "stands twice or out of order");
}

TEST_CASE("manifest: boxes that do not tile their tensor are refused without any other file") {
  refuse(with("\"offset\":[0,3]", "\"offset\":[0,2]"),
         "tensor 'w': boxes [0:4, 0:3] and [0:4, 2:5] overlap");
  refuse(with("\"shape\":[4,3]", "\"shape\":[3,3]"), "3 of 24 elements are missing");
  refuse(with("\"offset\":[0,3],", ""), "\"offset\": is missing");
}

TEST_CASE("save ids differ and have 32 hexadecimal digits") {
  CHECK(new_save_id() != new_save_id());
  CHECK(new_save_id().size() == 32);
}
