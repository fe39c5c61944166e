#include "lib/ckpt/verify.h"

#include <doctest/doctest.h>

#include "lib/base/file.h"
#include "lib/base/random.h"
#include "lib/ckpt/layout.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;
using mm::ckpt::test::save_two_ranks;
using mm::ckpt::test::TempDir;

namespace {

void overwrite(const std::filesystem::path& path, std::string_view bytes) {
  mm::File file = mm::File::create(path);
  file.write(bytes);
}

void flip_bit(std::string& bytes, uint64_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
}

std::string first_problem(const std::filesystem::path& directory,
                          VerifyDepth depth = VerifyDepth::kChecksums) {
  const VerifyReport report = verify_checkpoint(directory, {.depth = depth});
  return report.ok() ? "ok" : report.problems.front();
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("verify: a good checkpoint passes at both depths") {
  const TempDir dir;
  const auto path = save_two_ranks(dir.path(), 3);
  const VerifyReport report = verify_checkpoint(path, {.threads = 2});
  CHECK(report.ok());
  CHECK(report.files == 2);
  CHECK(report.tensors == 4);
  CHECK(report.save_step == 3);
  CHECK(report.bytes_read == std::filesystem::file_size(path / shard_name(0)) +
                                 std::filesystem::file_size(path / shard_name(1)));
  const VerifyReport structure = verify_checkpoint(path, {.depth = VerifyDepth::kStructure});
  CHECK(structure.ok());
  CHECK(structure.bytes_read == 0);
}

TEST_CASE("verify: none of 300 random bit flips in shards, manifest and COMMIT is accepted") {
  const TempDir dir;
  const auto path = save_two_ranks(dir.path(), 3);
  const mm::Philox random(1, "flips");
  const std::vector<std::string> names = {shard_name(0), shard_name(1), std::string(kManifestName),
                                          std::string(kCommitName)};
  uint64_t draw = 0;
  for (const std::string& name : names) {
    const std::string whole = mm::read_file(path / name);
    for (int i = 0; i < 75; ++i) {
      // Every second flip of a shard goes into its header.
      const bool in_header = name.starts_with("shard") && i % 2 == 0;
      const uint64_t bit = random.below(draw++, in_header ? 8 * 300 : 8 * whole.size());
      std::string bytes = whole;
      flip_bit(bytes, bit);
      overwrite(path / name, bytes);
      CAPTURE(name);
      CAPTURE(bit);
      CHECK_FALSE(verify_checkpoint(path).ok());
    }
    overwrite(path / name, whole);
  }
  CHECK(verify_checkpoint(path).ok());
}

TEST_CASE("F26: a bit flip is reported with file, block, checksums, tensor and elements") {
  const TempDir dir;
  const auto shard = save_two_ranks(dir.path(), 3) / shard_name(0);
  std::string bytes = mm::read_file(shard);
  flip_bit(bytes, 8 * (bytes.size() - 5));
  overwrite(shard, bytes);
  const std::string problem = first_problem(shard.parent_path());
  CAPTURE(problem);
  CHECK(contains(problem, "shard-rank-00000.safetensors: block 1 (bytes 1048576 to " +
                              std::to_string(bytes.size()) + "): crc32c "));
  CHECK(contains(problem, " expected; holds tensor 'big' elements "));
  CHECK(contains(problem, " to 1572864"));
  CHECK(first_problem(shard.parent_path(), VerifyDepth::kStructure) == "ok");
}

TEST_CASE(
    "F27: a file one byte shorter or longer is refused by its size, before its data is read") {
  const TempDir dir;
  const auto shard = save_two_ranks(dir.path(), 3) / shard_name(1);
  const uint64_t size = std::filesystem::file_size(shard);
  std::filesystem::resize_file(shard, size - 1);
  CHECK(contains(first_problem(shard.parent_path(), VerifyDepth::kStructure),
                 "truncated by 1 bytes"));
  std::filesystem::resize_file(shard, size + 1);
  CHECK(contains(first_problem(shard.parent_path(), VerifyDepth::kStructure), "longer by 1 bytes"));
}

TEST_CASE("F28: a shard missing or of another save is named, with both save ids") {
  const TempDir dir;
  const auto older = save_two_ranks(dir.path(), 2), newer = save_two_ranks(dir.path(), 3);
  const std::string old_id = read_committed_manifest(older).save_id,
                    new_id = read_committed_manifest(newer).save_id;
  std::filesystem::copy_file(older / shard_name(1), newer / shard_name(1),
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(contains(
      first_problem(newer, VerifyDepth::kStructure),
      "shard-rank-00001.safetensors: belongs to save '" + old_id + "', not to '" + new_id + "'"));
  std::filesystem::remove(newer / shard_name(1));
  CHECK(contains(first_problem(newer), "shard-rank-00001.safetensors: missing"));
}

TEST_CASE("verify: COMMIT of another save does not commit this one") {
  const TempDir dir;
  const auto older = save_two_ranks(dir.path(), 2), newer = save_two_ranks(dir.path(), 3);
  overwrite(newer / kCommitName, mm::read_file(older / kCommitName));
  CHECK(contains(first_problem(newer), "COMMIT: does not belong to"));
}
