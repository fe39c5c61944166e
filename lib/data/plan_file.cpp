#include "lib/data/plan_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/json.h"
#include "lib/data/epoch_planner.h"

namespace mm::data {
namespace {

constexpr ColumnFormat kFormat{"MMEPLAN\n", 1, "plan"};
static_assert(sizeof(SampleSize) == 16, "hashed as it lies in memory");

/// Sets without buckets have the hash of the time before there were any.
bool has_buckets(std::span<const SampleSize> sizes) {
  return std::ranges::any_of(sizes, [](const SampleSize& size) { return !size.bucket.empty(); });
}

Json to_json(const PlanIdentity& identity) {
  const PlanOptions& o = identity.options;
  Json json = {{"epoch", identity.epoch},
               {"image_cost", o.image_cost},
               {"max_attention_pairs", o.max_attention_pairs},
               {"max_images", o.max_images},
               {"oversize", name_of(o.oversize)},
               {"packing", name_of(o.packing)},
               {"packs_per_step", o.packs_per_step},
               {"planner", kPlannerVersion},
               {"samples", identity.samples},
               {"seed", o.seed},
               {"sequence_length", o.sequence_length},
               {"sizes_xxh3_64", identity.sizes_hash}};
  if (o.packing == Packing::kBuckets) {
    json["batch_pixels"] = o.batch_pixels;
    json["leftovers"] = name_of(o.leftovers);
    json["bucket_planner"] = kBucketPlannerVersion;
  }
  return json;
}

void read_bucket_options(const Json& json, const std::string& path, PlanOptions& o) {
  o.batch_pixels = json.at("batch_pixels").get<int64_t>();
  const auto leftovers = leftovers_from_name(json.at("leftovers").get<std::string>());
  if (!leftovers || json.at("bucket_planner").get<int>() != kBucketPlannerVersion)
    throw DataError("{}: made by another planner of buckets than this program's; delete it", path);
  o.leftovers = *leftovers;
}

PlanIdentity identity_from(const std::string& text, const std::string& path) try {
  const Json json = parse_json(text, path);
  PlanIdentity identity{.epoch = json.at("epoch").get<uint64_t>(),
                        .samples = json.at("samples").get<uint64_t>(),
                        .sizes_hash = json.at("sizes_xxh3_64").get<uint64_t>()};
  PlanOptions& o = identity.options;
  o.image_cost = json.at("image_cost").get<double>();
  o.max_attention_pairs = json.at("max_attention_pairs").get<int64_t>();
  o.max_images = json.at("max_images").get<int32_t>();
  o.packs_per_step = json.at("packs_per_step").get<int32_t>();
  o.seed = json.at("seed").get<uint64_t>();
  o.sequence_length = json.at("sequence_length").get<int32_t>();
  const auto packing = packing_from_name(json.at("packing").get<std::string>());
  const auto oversize = oversize_from_name(json.at("oversize").get<std::string>());
  if (!packing || !oversize) throw DataError("{}: unknown packing or oversize word", path);
  o.packing = *packing;
  if (o.packing == Packing::kBuckets) read_bucket_options(json, path, o);
  o.oversize = *oversize;
  if (json.at("planner").get<int>() != kPlannerVersion)
    throw DataError("{}: made by planner {}, this program has {}; delete it", path,
                    json.at("planner").get<int>(), kPlannerVersion);
  return identity;
} catch (const Json::exception& e) {
  throw DataError("{}: column about: {}", path, e.what());
}

/// `may_be_empty`: counts of what else there is in a part, if that allows parts of size 0.
void check_rising(std::span<const uint64_t> ends, uint64_t last, std::string_view what,
                  const std::string& path, std::span<const uint32_t> may_be_empty = {}) {
  if (ends.empty() || ends.front() != 0 || ends.back() != last)
    throw DataError("{}: column {} does not run from 0 to {}", path, what, last);
  for (size_t i = 1; i < ends.size(); ++i) {
    const bool filled = i - 1 < may_be_empty.size() && may_be_empty[i - 1] > 0;
    if (ends[i] < ends[i - 1] || (ends[i] == ends[i - 1] && !filled))
      throw DataError("{}: column {}: {} is empty", path, what, i - 1);
  }
}

/// Fillers alone take their shape from the first pack of their step.
void check_fillers(const PlanView& plan, const std::string& path) {
  for (uint64_t s = 0; s < plan.steps(); ++s) {
    if (plan.pack(plan.step_begin[s]).empty())
      throw DataError("{}: step {} begins with fillers alone", path, s);
  }
}

/// Each row of the index once, in a pack or dropped: law 3 on the plan.
void check_complete(const PlanView& plan, uint64_t samples, const std::string& path) {
  if (samples > UINT32_MAX || plan.rows.size() + plan.dropped.size() != samples) {
    throw DataError("{}: {} rows in packs and {} dropped, the set has {}", path, plan.rows.size(),
                    plan.dropped.size(), samples);
  }
  std::vector<bool> seen(samples);
  for (const auto column : {plan.rows, plan.dropped}) {
    for (const uint32_t row : column) {
      if (row >= samples) throw DataError("{}: row {} of {}", path, row, samples);
      if (seen[row]) throw DataError("{}: row {} stands there twice", path, row);
      seen[row] = true;
    }
  }
}

}  // namespace

uint64_t hash_sizes(std::span<const SampleSize> sizes) {
  if (has_buckets(sizes)) return xxh3_64(std::as_bytes(sizes));
  std::vector<int32_t> numbers;
  numbers.reserve(3 * sizes.size());
  for (const SampleSize& size : sizes)
    numbers.insert(numbers.end(), {size.tokens, size.images, size.targets});
  return xxh3_64(std::as_bytes(std::span(numbers)));
}

PlanIdentity identity_of(std::span<const SampleSize> sizes, const PlanOptions& options,
                         uint64_t epoch) {
  return {options, epoch, sizes.size(), hash_sizes(sizes)};
}

std::string plan_file_name(const PlanIdentity& identity) {
  return fmt::format("plan-{:016x}.mmp", xxh3_64(to_json(identity).dump()));
}

std::string hash_plan(const PlanView& plan) {
  std::string hashes;
  hashes += xxh3_128_hex(std::as_bytes(plan.rows));
  hashes += xxh3_128_hex(std::as_bytes(plan.pack_begin));
  hashes += xxh3_128_hex(std::as_bytes(plan.step_begin));
  hashes += xxh3_128_hex(std::as_bytes(plan.dropped));
  if (!plan.fillers.empty()) hashes += xxh3_128_hex(std::as_bytes(plan.fillers));
  return xxh3_128_hex(hashes);
}

void write_plan(const std::filesystem::path& path, const PlanView& plan,
                const PlanIdentity& identity) {
  const std::string about = to_json(identity).dump();
  std::vector<NamedColumn> columns{
      named_column("about", std::span<const char>(about)), named_column("rows", plan.rows),
      named_column("pack_begin", plan.pack_begin), named_column("step_begin", plan.step_begin),
      named_column("dropped", plan.dropped)};
  if (!plan.fillers.empty()) columns.push_back(named_column("fillers", plan.fillers));
  write_columns(path, kFormat, plan.rows.size(), columns);
}

PlanFile::PlanFile(const std::filesystem::path& path) : file_(path, kFormat) {
  const auto about = file_.get<char>("about", std::nullopt);
  constexpr size_t kMostAbout = 4096;
  if (about.size() > kMostAbout)
    throw DataError("{}: column about has {} bytes, at most {} expected", file_.path(),
                    about.size(), kMostAbout);
  identity_ = identity_from(std::string(about.data(), about.size()), file_.path());
  view_.rows = file_.get<uint32_t>("rows", file_.rows());
  view_.pack_begin = file_.get<uint64_t>("pack_begin", std::nullopt);
  view_.step_begin = file_.get<uint64_t>("step_begin", std::nullopt);
  view_.dropped = file_.get<uint32_t>("dropped", std::nullopt);
  if (file_.has("fillers")) view_.fillers = file_.get<uint32_t>("fillers", view_.packs());
  check_rising(view_.pack_begin, view_.rows.size(), "pack_begin", file_.path(), view_.fillers);
  check_rising(view_.step_begin, view_.packs(), "step_begin", file_.path());
  check_fillers(view_, file_.path());
  check_complete(view_, identity_.samples, file_.path());
}

void PlanFile::check_matches(std::span<const SampleSize> sizes) const {
  if (sizes.size() != identity_.samples) {
    throw DataError("{}: made for {} samples, the data set has {}; plan again", file_.path(),
                    identity_.samples, sizes.size());
  }
  if (hash_sizes(sizes) != identity_.sizes_hash) {
    throw DataError("{}: made for samples of other sizes than the data set's; plan again",
                    file_.path());
  }
}

EpochSteps::EpochSteps(const EpochPlanner& planner, uint64_t epoch,
                       const std::filesystem::path& plan_directory) {
  if (plan_directory.empty()) {
    table_ = planner.plan(epoch);
    return;
  }
  const PlanIdentity identity = identity_of(planner.sizes(), planner.options(), epoch);
  const auto path = plan_directory / plan_file_name(identity);
  if (!std::filesystem::exists(path)) write_plan(path, planner.plan(epoch).view(), identity);
  file_ = std::make_unique<PlanFile>(path);
  if (file_->identity() != identity)
    throw DataError("{}: made for other options or samples than its name says; delete it",
                    path.string());
}

}  // namespace mm::data
