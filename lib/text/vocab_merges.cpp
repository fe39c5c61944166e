#include "lib/text/vocab_merges.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/text/json_fields.h"
#include "lib/text/special_tokens.h"

namespace mm::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;
constexpr int64_t kMaxId = 16'000'000;
constexpr const char* kEndOfWord = "</w>";
// What published CLIP files have; data, to the letter.
constexpr const char* kClipPattern = R"('s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)";
// In transformers' order, by which those that no file gives an id get one.
constexpr std::array kRoles{"bos_token", "eos_token", "unk_token", "sep_token",
                            "pad_token", "cls_token", "mask_token"};

int64_t id_in(const json& value, const std::string& piece, const fs::path& path) {
  const bool whole = value.is_number_unsigned() && value.get<uint64_t>() <= kMaxId;
  if (!whole)
    throw DataError("{}: \"{}\" has the id {}, expected a whole number up to {}", path.string(),
                    piece, value.dump(), kMaxId);
  return value.get<int64_t>();
}

/// Everything that stands in the directory.
struct Files {
  fs::path directory;
  json vocab, added;
  SpecialTokens special;
  bool clip = false;

  fs::path vocab_path() const { return directory / "vocab.json"; }
};

bool has_word_ends(const json& vocab) {
  for (const auto& item : vocab.items()) {
    if (item.key().ends_with(kEndOfWord)) return true;
  }
  return false;
}

Files read_files(const fs::path& directory) {
  Files files{.directory = directory};
  files.vocab = read_settings(files.vocab_path());
  files.special = read_special_tokens(directory);
  files.added = read_settings(directory / "added_tokens.json");
  const std::string origin = (directory / "tokenizer_config.json").string();
  std::string kind = text_field(files.special.config, "tokenizer_class", "", origin);
  if (kind.ends_with("Fast")) kind.resize(kind.size() - 4);
  if (!kind.empty() && kind != "CLIPTokenizer" && kind != "GPT2Tokenizer")
    throw DataError(
        "{}: tokenizer_class {} with vocab.json and merges.txt is not supported, CLIPTokenizer and "
        "GPT2Tokenizer are; give its tokenizer.json",
        origin, kind);
  files.clip = kind.empty() ? has_word_ends(files.vocab) : kind == "CLIPTokenizer";
  return files;
}

json read_merges(const fs::path& path) {
  const std::string text = read_file(path, kMaxFileBytes);
  json merges = json::array();
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    const bool heading = at == 0 && line.starts_with("#version");
    at = end + 1;
    if (line.empty() || heading) continue;
    const size_t blank = line.find(' ');
    if (blank == std::string::npos || line.find(' ', blank + 1) != std::string::npos)
      throw DataError("{}: \"{}\" is no merge of two pieces", path.string(), line.substr(0, 80));
    merges.push_back(json::array({line.substr(0, blank), line.substr(blank + 1)}));
  }
  return merges;
}

/// A token that is found in texts as it is; `like`: its text, or an object of text and flags.
json added_token(const json& like, int64_t id, bool special, const std::string& origin) {
  const json flags = like.is_object() ? like : json::object();
  const std::string content =
      like.is_string() ? like.get<std::string>() : text_field(flags, "content", "", origin);
  if (content.empty()) throw DataError("{}: a special token without text", origin);
  return {{"id", id},
          {"content", content},
          {"special", flag_field(flags, "special", special, origin)},
          {"single_word", flag_field(flags, "single_word", false, origin)},
          {"lstrip", flag_field(flags, "lstrip", false, origin)},
          {"rstrip", flag_field(flags, "rstrip", false, origin)},
          {"normalized", flag_field(flags, "normalized", !special, origin)}};
}

/// Collects added tokens, each text once.
class AddedList {
 public:
  explicit AddedList(const Files& files) : files_(files) {
    for (const auto& [piece, value] : files.vocab.items()) {
      const int64_t id = id_in(value, piece, files.vocab_path());
      pieces_.emplace(id, piece);
      next_ = std::max(next_, id + 1);
    }
  }
  void add(const json& like, std::optional<int64_t> id, bool special, const fs::path& path) {
    json token = added_token(like, 0, special, path.string());
    const std::string content = token["content"];
    if (json* there = find(content)) {
      if (special) (*there)["special"] = true;
      return;
    }
    const auto in_vocab = files_.vocab.find(content);
    if (!id && in_vocab != files_.vocab.end()) id = id_in(*in_vocab, content, files_.vocab_path());
    token["id"] = id.value_or(next_);
    const auto holder = pieces_.emplace(token["id"].get<int64_t>(), content).first;
    if (holder->second != content)
      throw DataError("{}: \"{}\" has the id {}, which is that of \"{}\"", path.string(), content,
                      holder->first, holder->second);
    next_ = std::max(next_, holder->first + 1);
    tokens_.push_back(std::move(token));
  }
  int64_t id_of(const std::string& content) { return (*find(content))["id"]; }
  const json& tokens() const { return tokens_; }

 private:
  json* find(const std::string& content) {
    for (json& token : tokens_) {
      if (token["content"] == content) return &token;
    }
    return nullptr;
  }
  const Files& files_;
  json tokens_ = json::array();
  std::unordered_map<int64_t, std::string> pieces_;  // by id
  int64_t next_ = 0;
};

/// What a role is without a word about it: CLIPTokenizer's and GPT2Tokenizer's defaults.
json usual(const Files& files, std::string_view role) {
  if (role == "bos_token") return files.clip ? "<|startoftext|>" : "<|endoftext|>";
  if (role == "eos_token" || role == "unk_token") return "<|endoftext|>";
  return files.clip && role == "pad_token" ? json("<|endoftext|>") : json();
}

json role_of(const Files& files, const char* role) {
  const json given = files.special.of(role);
  return given.is_null() ? usual(files, role) : given;
}

AddedList added_tokens(const Files& files) {
  AddedList list(files);
  const fs::path config = files.directory / "tokenizer_config.json",
                 extra = files.directory / "added_tokens.json";
  const auto decoder = files.special.config.find("added_tokens_decoder");
  if (decoder != files.special.config.end() && decoder->is_object()) {
    for (const auto& [id, token] : decoder->items()) {
      const bool digits = !id.empty() && id.size() < 9 &&
                          std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; });
      if (!digits) throw DataError("{}: \"{}\" is no id of an added token", config.string(), id);
      list.add(token, std::stoll(id), false, config);
    }
  }
  for (const auto& [content, id] : files.added.items())
    list.add(content, id_in(id, content, extra), false, extra);
  for (const char* role : kRoles) {
    const json token = role_of(files, role);
    if (!token.is_null()) list.add(token, {}, true, config);
  }
  // Not one over the other, as with roles: the map's come behind.
  for (const json* settings : {&files.special.config, &files.special.map}) {
    if (settings == &files.special.map && decoder != files.special.config.end()) break;
    const auto more = settings->find("additional_special_tokens");
    if (more == settings->end() || !more->is_array()) continue;
    for (const json& token : *more) list.add(token, {}, true, config);
  }
  return list;
}

std::string content_of(const json& token) {
  return token.is_object() ? token.value("content", "") : token.get<std::string>();
}

json clip_normalizer() {
  return {{"type", "Sequence"},
          {"normalizers",
           {{{"type", "NFC"}},
            {{"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", " "}},
            {{"type", "Lowercase"}}}}};
}

json clip_pre_tokenizer() {
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"},
             {"pattern", {{"Regex", kClipPattern}}},
             {"behavior", "Removed"},
             {"invert", true}},
            {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
}

/// bos in front (and eos behind, of CLIP).
json post_processor(const Files& files, AddedList& added) {
  const std::string bos = content_of(role_of(files, "bos_token")),
                    eos = content_of(role_of(files, "eos_token"));
  if (files.clip)
    return {{"type", "RobertaProcessing"},
            {"sep", json::array({eos, added.id_of(eos)})},
            {"cls", json::array({bos, added.id_of(bos)})}};
  if (!flag_field(files.special.config, "add_bos_token", false, files.directory.string()))
    return {{"type", "ByteLevel"}};
  return {{"type", "TemplateProcessing"},
          {"single",
           {{{"SpecialToken", {{"id", bos}, {"type_id", 0}}}},
            {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
          {"special_tokens", {{bos, {{"id", bos}, {"ids", json::array({added.id_of(bos)})}}}}}};
}

}  // namespace

bool has_vocab_and_merges(const fs::path& directory) {
  return fs::is_regular_file(directory / "vocab.json") &&
         fs::is_regular_file(directory / "merges.txt");
}

std::string compose_tokenizer_json(const fs::path& directory) {
  const Files files = read_files(directory);
  AddedList added = added_tokens(files);
  json root{{"version", "1.0"}, {"added_tokens", added.tokens()}};
  const bool blank =
      flag_field(files.special.config, "add_prefix_space", false, files.directory.string());
  root["normalizer"] = files.clip ? clip_normalizer() : json();
  root["pre_tokenizer"] =
      files.clip ? clip_pre_tokenizer() : json{{"type", "ByteLevel"}, {"add_prefix_space", blank}};
  root["post_processor"] = post_processor(files, added);
  root["decoder"] = {{"type", "ByteLevel"}};
  root["model"] = {{"type", "BPE"},
                   {"vocab", files.vocab},
                   {"merges", read_merges(directory / "merges.txt")},
                   {"end_of_word_suffix", files.clip ? json(kEndOfWord) : json()}};
  try {
    return root.dump() + "\n";
  } catch (const json::exception& error) {  // bytes of merges.txt that are no UTF-8
    throw DataError("{}: {}", (directory / "merges.txt").string(), error.what());
  }
}

}  // namespace mm::text
