#include "lib/ckpt/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/thread_pool.h"
#include "lib/ckpt/json_scanner.h"
#include "lib/ckpt/layout.h"
#include "lib/ckpt/safetensors.h"

namespace mm::ckpt {
namespace {

// What the manifest says that one file holds: name there -> dtype and shape.
struct ExpectedTensor {
  DType dtype;
  std::vector<uint64_t> shape;
};
using ExpectedTensors = std::map<std::string, ExpectedTensor, std::less<>>;

// Checks one file; a worker thread's own state.
class FileCheck {
 public:
  FileCheck(const std::filesystem::path& directory, const Manifest& manifest, size_t index)
      : path_(directory / manifest.files[index].name),
        record_(manifest.files[index]),
        save_id_(manifest.save_id) {}

  void run(const ExpectedTensors& expected, VerifyDepth depth) {
    try {
      if (!check_size()) return;
      check_header(expected);
      if (depth == VerifyDepth::kChecksums) check_blocks();
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      problem(error.what());
    } catch (const std::filesystem::filesystem_error& error) {
      problem(path_.string() + ": " + error.code().message());
    }
  }

  std::vector<std::string> problems;
  std::vector<std::string> notes;
  uint64_t bytes_read = 0;

 private:
  void problem(const std::string& what) { problems.push_back(what); }

  // Sizes first: a file cut short is named as such before anything in it is read.
  bool check_size() {
    if (!std::filesystem::is_regular_file(path_)) {
      problem(fmt::format("{}: missing, or not a file", path_.string()));
      return false;
    }
    const uint64_t found = File::open_read(path_).size_bytes();
    const uint64_t wanted = record_.checksums.size_bytes;
    if (found == wanted) return true;
    problem(fmt::format("{}: {} by {} bytes: {} bytes, {} in the manifest", path_.string(),
                        found < wanted ? "truncated" : "longer",
                        found < wanted ? wanted - found : found - wanted, found, wanted));
    return false;
  }

  void check_header(const ExpectedTensors& expected) {
    try {
      file_ = SafetensorsFile::open(path_);
    } catch (const DataError& error) {
      problem(error.what());
      return;
    }
    for (const std::string& note : file_->notes()) notes.push_back(path_.string() + ": " + note);
    const auto id = file_->metadata().find(std::string(kSaveIdKey));
    const std::string found =
        id == file_->metadata().end() ? "no save" : "save " + printable_name(id->second);
    if (id == file_->metadata().end() || id->second != save_id_) {
      problem(fmt::format("{}: belongs to {}, not to '{}'", path_.string(), found, save_id_));
      return;
    }
    for (const auto& [name, tensor] : expected) check_tensor(name, tensor);
    for (const TensorEntry& entry : file_->tensors()) {
      if (!expected.contains(entry.name)) {
        problem(fmt::format("{}: tensor {} is not in the manifest", path_.string(),
                            printable_name(entry.name)));
      }
    }
  }

  void check_tensor(const std::string& name, const ExpectedTensor& wanted) {
    const TensorEntry* entry = file_->find(name);
    if (entry == nullptr) {
      problem(fmt::format("{}: tensor {} is missing", path_.string(), printable_name(name)));
    } else if (entry->dtype != wanted.dtype || entry->shape != wanted.shape) {
      problem(fmt::format("{}: tensor {} is {} {}, {} {} in the manifest", path_.string(),
                          printable_name(name), dtype_name(entry->dtype), shape_text(entry->shape),
                          dtype_name(wanted.dtype), shape_text(wanted.shape)));
    }
  }

  void check_blocks() {
    const File file = File::open_read(path_);
    const FileChecksums& wanted = record_.checksums;
    std::vector<std::byte> block(std::min(kBlockBytes, wanted.size_bytes));
    ChecksumStream stream;
    for (uint64_t at = 0; at < wanted.size_bytes; at += kBlockBytes) {
      const auto part = std::span(block).first(std::min(kBlockBytes, wanted.size_bytes - at));
      file.read_at(at, part);
      stream.update(part);
      bytes_read += part.size();
    }
    const FileChecksums found = stream.finish();
    const size_t before = problems.size();
    for (size_t i = 0; i < wanted.block_crc32c.size(); ++i) {
      if (found.block_crc32c[i] != wanted.block_crc32c[i]) bad_block(i, found.block_crc32c[i]);
    }
    if (problems.size() == before && found.xxh3_128 != wanted.xxh3_128) {
      problem(fmt::format("{}: xxh3_128 {}, {} in the manifest", path_.string(), found.xxh3_128,
                          wanted.xxh3_128));
    }
  }

  void bad_block(size_t index, uint32_t found) {
    const uint64_t begin = index * kBlockBytes;
    const uint64_t end = std::min(begin + kBlockBytes, record_.checksums.size_bytes);
    problem(fmt::format("{}: block {} (bytes {} to {}): crc32c {:08x}, {:08x} expected; {}",
                        path_.string(), index, begin, end, found,
                        record_.checksums.block_crc32c[index], contents(begin, end)));
  }

  // The tensors that lie in bytes [begin, end) of the file.
  std::string contents(uint64_t begin, uint64_t end) const {
    if (!file_) return "its header is unreadable";
    constexpr size_t kNamed = 3;
    std::string text = begin < file_->data_start() ? "holds the header" : "holds";
    size_t named = 0, others = 0;
    for (const TensorEntry& entry : file_->tensors()) {
      const uint64_t first = file_->data_start() + entry.begin,
                     last = file_->data_start() + entry.end;
      if (first >= end || last <= begin || first == last) continue;
      if (named == kNamed) {
        ++others;
        continue;
      }
      const uint64_t bits = static_cast<uint64_t>(size_bits(entry.dtype));
      const uint64_t low = (std::max(begin, first) - first) * 8 / bits;
      const uint64_t high = ((std::min(end, last) - first) * 8 + bits - 1) / bits;
      text +=
          fmt::format("{} tensor {} elements {} to {}", named++ == 0 && text == "holds" ? "" : ",",
                      printable_name(entry.name), low, high);
    }
    return others > 0 ? text + fmt::format(" and {} more tensors", others) : text;
  }

  std::filesystem::path path_;
  const FileRecord& record_;
  const std::string& save_id_;
  std::optional<SafetensorsFile> file_;
};

void add_problem(VerifyReport& report, const VerifyOptions& options, std::string text) {
  ++report.problem_count;
  if (report.problems.size() < options.max_problems) report.problems.push_back(std::move(text));
}

std::vector<ExpectedTensors> expected_by_file(const Manifest& manifest, VerifyReport& report,
                                              const VerifyOptions& options) {
  std::vector<ExpectedTensors> expected(manifest.files.size());
  for (const TensorRecord& tensor : manifest.tensors) {
    for (const Piece& piece : tensor.pieces) {
      const bool added = expected[piece.file]
                             .emplace(piece.tensor, ExpectedTensor{tensor.dtype, piece.box.shape})
                             .second;
      if (!added) {
        add_problem(report, options,
                    fmt::format("{}: {} stands for two pieces of the manifest",
                                manifest.files[piece.file].name, printable_name(piece.tensor)));
      }
    }
  }
  return expected;
}

}  // namespace

VerifyReport verify_files(const std::filesystem::path& directory, const Manifest& manifest,
                          const VerifyOptions& options) {
  VerifyReport report;
  report.save_id = manifest.save_id;
  report.save_step = manifest.step;
  report.files = manifest.files.size();
  report.tensors = manifest.tensors.size();
  const std::vector<ExpectedTensors> expected = expected_by_file(manifest, report, options);
  std::vector<FileCheck> checks;
  for (size_t i = 0; i < manifest.files.size(); ++i) checks.emplace_back(directory, manifest, i);
  parallel_for(checks.size(), options.threads,
               [&](size_t i) { checks[i].run(expected[i], options.depth); });
  for (const FileCheck& check : checks) {
    for (const std::string& problem : check.problems) add_problem(report, options, problem);
    report.notes.insert(report.notes.end(), check.notes.begin(), check.notes.end());
    report.bytes_read += check.bytes_read;
  }
  return report;
}

VerifyReport verify_checkpoint(const std::filesystem::path& directory,
                               const VerifyOptions& options) {
  VerifyReport report;
  try {
    return verify_files(directory, read_committed_manifest(directory), options);
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    add_problem(report, options, error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    add_problem(report, options, fmt::format("{}: {}", directory.string(), error.code().message()));
  }
  return report;
}

}  // namespace mm::ckpt
