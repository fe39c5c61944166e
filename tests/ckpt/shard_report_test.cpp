#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/ckpt/commit.h"

using namespace mm::ckpt;

namespace {

ShardReport report_of(const std::string& file, std::vector<TensorRecord> tensors) {
  return {{file, {8, {1}, std::string(32, 'a')}}, std::move(tensors)};
}

}  // namespace

TEST_CASE("shard report: text and back") {
  const ShardReport report =
      report_of("s", {{"w", DType::kBF16, {4, 2}, {{0, "w@2,0", {{2, 0}, {2, 2}}}}},
                      {"x", DType::kF32, {}, {{0, "x", {{}, {}}}}}});
  const ShardReport back = decode_report(encode_report(report), "r");
  CHECK(back.file.name == "s");
  CHECK(back.file.checksums == report.file.checksums);
  REQUIRE(back.tensors.size() == 2);
  CHECK(back.tensors[0].pieces[0].box == ElementBox{{2, 0}, {2, 2}});
  CHECK(back.tensors[0].dtype == DType::kBF16);
  CHECK(encode_report(back) == encode_report(report));
  CHECK_THROWS_AS(decode_report("{}", "r"), mm::DataError);
  CHECK_THROWS_AS(decode_report("{\"file\":1}", "r"), mm::DataError);
}

TEST_CASE("shard report: reports merge to a manifest in which pieces know their file") {
  const std::vector<ShardReport> reports = {
      report_of("s0", {{"w", DType::kF32, {4}, {{0, "w@0", {{0}, {2}}}}},
                       {"b", DType::kF32, {1}, {{0, "b", {{0}, {1}}}}}}),
      report_of("s1", {{"w", DType::kF32, {4}, {{0, "w@2", {{2}, {2}}}}}})};
  const Manifest merged =
      merge_reports({"", 3, std::string(32, 'b'), "", 0, 2}, reports, {{"k", 1}});
  REQUIRE(merged.tensors.size() == 2);
  CHECK(merged.tensors[0].name == "b");
  CHECK(merged.tensors[1].pieces[1].file == 1);
  CHECK(merged.tensors[1].pieces[1].tensor == "w@2");
  CHECK(merged.step == 3);
  CHECK(decode_manifest(encode_manifest(merged), "m").state["k"] == 1);
}

TEST_CASE("shard report: a tensor that two ranks saved whole is refused") {
  const TensorRecord whole{"w", DType::kF32, {4}, {{0, "w", {{0}, {4}}}}};
  const std::vector<ShardReport> reports = {report_of("s0", {whole}), report_of("s1", {whole})};
  CHECK_THROWS_WITH_AS(merge_reports({"", 3, std::string(32, 'b'), "", 0, 2}, reports, {}),
                       "tensor 'w': boxes [0:4] and [0:4] overlap", mm::DataError);
}
