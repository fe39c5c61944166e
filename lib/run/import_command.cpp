#include "lib/run/import_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "lib/base/error.h"
#include "lib/base/text_escape.h"

namespace mm::run {
namespace {

// Flags of which every training command has at least one.
constexpr const char* kMarks[] = {"model_name_or_path", "per_device_train_batch_size",
                                  "vision_tower",       "global_batch_size",
                                  "micro_batch_size",   "train_iters"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_flag(std::string_view word) {
  return word.size() > 2 && word.starts_with("--") && is_letter(word[2]);
}

const ImportFlag* find(const std::vector<ImportFlag>& flags, std::string_view key) {
  const auto at = std::find_if(flags.rbegin(), flags.rend(),
                               [&](const ImportFlag& flag) { return flag.key == key; });
  return at == flags.rend() ? nullptr : &*at;
}

std::optional<int64_t> whole(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > 1 << 20)
    return std::nullopt;
  return value;
}

/// A launcher's flag has one value; the words behind it belong to no flag.
std::string first_value(const ImportFlag& flag) {
  return flag.values.empty() ? "" : flag.values.front();
}

/// The first of `keys` that is given: its number; nothing if its value is not one.
std::optional<int64_t> first_number(const std::vector<ImportFlag>& flags,
                                    std::initializer_list<const char*> keys, int64_t otherwise) {
  for (const char* key : keys) {
    if (const ImportFlag* flag = find(flags, key)) return whole(first_value(*flag));
  }
  return otherwise > 0 ? std::optional<int64_t>(otherwise) : std::nullopt;
}

/// deepspeed --include "host1:0,1@host2:0,1": its slots.
std::optional<int64_t> included_slots(std::string_view hosts) {
  int64_t slots = 0;
  while (!hosts.empty()) {
    const std::string_view host = hosts.substr(0, hosts.find('@'));
    hosts.remove_prefix(std::min(hosts.size(), host.size() + 1));
    const size_t colon = host.find(':');
    if (colon == std::string_view::npos) return std::nullopt;  // all slots of a host
    slots += 1 + std::count(host.begin() + static_cast<std::ptrdiff_t>(colon), host.end(), ',');
  }
  return slots > 0 ? std::optional<int64_t>(slots) : std::nullopt;
}

std::optional<int64_t> world_of(const std::vector<ImportFlag>& launcher) {
  if (const ImportFlag* all = find(launcher, "num_processes")) return whole(first_value(*all));
  if (const ImportFlag* hosts = find(launcher, "include"))
    return included_slots(first_value(*hosts));
  const auto nodes = first_number(launcher, {"num_nodes", "nnodes", "nodes"}, 1);
  const auto each = first_number(
      launcher, {"num_gpus", "nproc_per_node", "nproc", "gpus_per_node", "ntasks_per_node"}, 0);
  if (!nodes || !each) return std::nullopt;
  return *nodes * *each;
}

/// The place of the program in a command: a word that ends in .py, or what follows `-m`.
std::optional<size_t> program_at(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].ends_with(".py") && !is_flag(words[i])) return i;
  }
  // `python -m torch.distributed.run` is a launcher; the last -m names the program.
  for (size_t i = words.size(); i-- > 1;) {
    if (words[i - 1] == "-m" && words[i].find("train") != std::string::npos) return i;
  }
  return std::nullopt;
}

bool trains(const std::vector<ImportFlag>& flags) {
  return std::any_of(std::begin(kMarks), std::end(kMarks),
                     [&](const char* mark) { return find(flags, mark) != nullptr; });
}

std::optional<TrainCommand> read_command(const ShellCommand& command) {
  TrainCommand out{.line = command.line};
  const std::vector<std::string>& words = command.words;
  if (words.front() == "echo" || words.front() == "printf") return std::nullopt;
  if (const auto program = program_at(words)) {
    out.program = words[*program];
    std::vector<std::string> ignored;
    const std::vector<std::string> before(words.begin(),
                                          words.begin() + static_cast<std::ptrdiff_t>(*program));
    out.launcher = parse_flags(before, 0, ignored);
    out.flags = parse_flags(words, *program + 1, out.strays);
    out.world = world_of(out.launcher);
  } else if (is_flag(words.front())) {
    out.flags = parse_flags(words, 0, out.strays);
  }
  if (!trains(out.flags)) return std::nullopt;
  return out;
}

}  // namespace

std::string ImportFlag::value() const { return fmt::format("{}", fmt::join(values, " ")); }

std::vector<ImportFlag> parse_flags(const std::vector<std::string>& words, size_t begin,
                                    std::vector<std::string>& strays) {
  std::vector<ImportFlag> flags;
  for (size_t i = begin; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!is_flag(word)) {
      flags.empty() ? strays.push_back(word) : flags.back().values.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    ImportFlag flag{
        .flag = word.substr(0, equals), .key = word.substr(2, equals - 2), .values = {}};
    if (equals == std::string::npos) flag.key = word.substr(2);
    std::replace(flag.key.begin(), flag.key.end(), '-', '_');
    if (equals != std::string::npos) flag.values.push_back(word.substr(equals + 1));
    flags.push_back(std::move(flag));
  }
  return flags;
}

TrainCommand find_train_command(const ShellScript& script, int number, const std::string& origin) {
  std::vector<TrainCommand> found;
  for (const ShellCommand& command : script.commands) {
    if (auto train = read_command(command)) found.push_back(std::move(*train));
  }
  if (found.empty()) {
    throw DataError(
        "{}: no training command in it; expected `... train.py --model_name_or_path ...` (LLaVA), "
        "`... train.py --micro-batch-size ...` (Megatron-LM), or such flags alone",
        origin);
  }
  if (number == 0 && found.size() > 1) {
    std::vector<int> lines;
    for (const TrainCommand& command : found) lines.push_back(command.line);
    throw DataError("{}: {} training commands, at lines {}; choose one with --command 1 to {}",
                    origin, found.size(), fmt::join(lines, ", "), found.size());
  }
  const auto index = static_cast<size_t>(std::max(number, 1)) - 1;
  if (index >= found.size())
    throw UsageError("--command {}: {} has {}", number, origin, found.size());
  return found[index];
}

}  // namespace mm::run
