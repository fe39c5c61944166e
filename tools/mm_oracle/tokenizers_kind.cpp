#include <functional>
#include <numeric>

#include "lib/base/error.h"
#include "lib/text/tokenizer.h"
#include "tools/mm_oracle/checks.h"
#include "tools/mm_oracle/kinds.h"

namespace mm::oracle {
namespace {

using Ids = std::vector<int32_t>;

/// The folder's strings and one tokenizer's rows, and where to report.
struct Rows {
  Folder& folder;
  Report& report;
  std::string path;  ///< "tokenizers/bpe_gpt2"
  std::vector<std::string> strings;

  std::filesystem::path file() const {
    const Json& name = folder.take(path + "/file");
    const std::filesystem::path relative = name.is_string() ? name.get<std::string>() : "";
    if (relative.empty() || relative.is_absolute() ||
        relative.string().find("..") != std::string::npos) {
      throw DataError("{}: {}/file is no path inside the folder", folder.directory().string(),
                      path);
    }
    return folder.directory() / relative;
  }

  std::string row(size_t i, const std::string& key) const {
    return path + "/rows/" + std::to_string(i) + "/" + key;
  }

  /// One exact quantity over all strings: `got(i)` against rows[i][key].
  void check(const std::string& key, const std::function<Json(size_t)>& got) const {
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < strings.size(); ++i) {
      if (Json(got(i)) == folder.take(row(i, key))) continue;
      if (wrong++ == 0) first = i;
    }
    report.exact(path + "/rows/*/" + key, wrong == 0,
                 fmt::format("{} of {} differ, first string {}", wrong, strings.size(), first));
  }

  void number(const std::string& key, double got) const {
    report.exact(path + "/" + key, folder.number(path + "/" + key) == got,
                 fmt::format("{} here", got));
  }

  /// `marks` is an object of text and id.
  void marks(const std::string& key, const text::Tokenizer& tokenizer) const {
    bool same = true;
    for (const auto& [mark, id] : folder.take(path + "/" + key).items()) {
      const auto got = tokenizer.piece_to_id(mark);
      same = same && got && Json(*got) == id;
    }
    report.exact(path + "/" + key, same, "a mark has another id");
  }
};

void check_byte_level(const Rows& rows) {
  const auto tokenizer = text::load_tokenizer(rows.file(), {.extra_marks = {}});
  const auto marked = [&](size_t i) { return tokenizer->encode_marked(rows.strings[i]).ids; };
  rows.number("vocab", tokenizer->vocab_size());
  rows.marks("special", *tokenizer);
  rows.report.exact(rows.path + "/adds_bos",
                    rows.folder.take(rows.path + "/adds_bos") == Json(tokenizer->adds_bos()),
                    "not so here");
  rows.check("ids", [&](size_t i) {
    Ids ids = marked(i);
    if (tokenizer->adds_bos()) ids.insert(ids.begin(), tokenizer->bos_id());
    return Json(ids);
  });
  rows.check("decoded", [&](size_t i) { return Json(tokenizer->decode(marked(i))); });
  rows.check("decoded_keep_special",
             [&](size_t i) { return Json(tokenizer->decode(marked(i), true)); });
  double round_trips = 0;
  for (size_t i = 0; i < rows.strings.size(); ++i)
    round_trips += tokenizer->decode(marked(i), true) == rows.strings[i];
  rows.number("round_trips", round_trips);
}

void check_marks_cut_out(const Rows& rows, const std::filesystem::path& file) {
  for (const bool everywhere : {true, false}) {
    const auto dummy = everywhere ? text::DummyPrefix::kEverywhere : text::DummyPrefix::kFirstOnly;
    const auto tokenizer = text::load_tokenizer(file, {.dummy_prefix = dummy});
    if (everywhere) rows.marks("marks", *tokenizer);
    rows.check(everywhere ? "ids_marks_prefix_everywhere" : "ids_marks_prefix_first_only",
               [&](size_t i) { return Json(tokenizer->encode_marked(rows.strings[i]).ids); });
  }
}

void check_sentencepiece(const Rows& rows) {
  const auto file = rows.file();
  const auto tokenizer = text::load_tokenizer(file, {.extra_marks = {}});
  rows.number("vocab", tokenizer->vocab_size());
  rows.number("unk", tokenizer->unk_id());
  rows.number("bos", tokenizer->bos_id());
  rows.number("eos", tokenizer->eos_id());
  rows.number("pad", tokenizer->pad_id());
  rows.check("ids", [&](size_t i) { return Json(tokenizer->encode(rows.strings[i])); });
  rows.check("decoded",
             [&](size_t i) { return Json(tokenizer->decode(tokenizer->encode(rows.strings[i]))); });
  double round_trips = 0;
  for (const std::string& s : rows.strings)
    round_trips += tokenizer->decode(tokenizer->encode(s)) == s;
  rows.number("round_trips", round_trips);
  if (rows.folder.has(rows.path + "/marks")) check_marks_cut_out(rows, file);
}

}  // namespace

void check_tokenizers(Folder& folder, Report& report) {
  folder.set_aside({"seed", "topics"});
  const Json& strings = folder.take("strings");
  if (!strings.is_array() ||
      !std::ranges::all_of(strings, [](const Json& s) { return s.is_string(); })) {
    throw DataError("{}: strings is not a list of strings", folder.directory().string());
  }
  for (const std::string& name : folder.keys("tokenizers")) {
    const Rows rows{folder, report, "tokenizers/" + name, strings.get<std::vector<std::string>>()};
    if (folder.has(rows.path + "/special")) {
      check_byte_level(rows);
    } else {
      check_sentencepiece(rows);
    }
  }
}

}  // namespace mm::oracle
