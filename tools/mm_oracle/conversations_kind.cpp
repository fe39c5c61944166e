#include "lib/base/error.h"
#include "lib/text/render.h"
#include "tools/mm_oracle/checks.h"
#include "tools/mm_oracle/kinds.h"

namespace mm::oracle {
namespace {

using Ids = std::vector<int32_t>;

/// One way to write a conversation: the key of its results, and what makes them.
struct Form {
  std::string key, template_name, tokenizer_file;
  text::DummyPrefix dummy = text::DummyPrefix::kEverywhere;
  bool keep_marks = false;
};

// The tokenizers' folder stands inside this one or beside it.
std::filesystem::path tokenizer_path(const Folder& folder, const std::string& file) {
  for (const auto& base : {folder.directory(), folder.directory() / ".."}) {
    const auto path = base / "tokenizers" / file;
    if (std::filesystem::exists(path)) return path;
  }
  throw DataError("{}: no tokenizers/{} in it or beside it", folder.directory().string(), file);
}

text::Conversation conversation_of(const Json& turns, int32_t images, const std::string& where) {
  text::Conversation conversation{.images = images};
  for (const Json& turn : turns) {
    const bool good =
        turn.is_array() && turn.size() == 2 && turn[0].is_string() && turn[1].is_string();
    const auto role = good ? text::role_from_name(turn[0].get<std::string>()) : std::nullopt;
    if (!role) throw DataError("expected.json: {}: a turn is not [role, text]", where);
    conversation.turns.push_back({*role, turn[1].get<std::string>()});
  }
  return conversation;
}

Ids trained(const Ids& labels) {
  Ids ids;
  for (const int32_t label : labels) {
    if (label != text::kIgnore) ids.push_back(label);
  }
  return ids;
}

void check_row(Folder& folder, Report& report, const Form& form, const text::Tokenizer& tokenizer,
               const std::string& row) {
  const std::string path = row + "/" + form.key;
  if (!folder.has(path)) return;
  const auto conversation = conversation_of(
      folder.take(row + "/turns"), static_cast<int32_t>(folder.number(row + "/images")), row);
  text::RenderOptions options{.image_tokens = static_cast<int32_t>(folder.number("image_tokens"))};
  const Json limit = folder.take(row + "/max_length");
  if (limit.is_number_integer()) options.max_length = limit.get<int32_t>();
  const auto chat = text::find_template(form.template_name);
  const auto check = [&](const std::string& key, const Json& got) {
    report.exact(path + "/" + key, folder.take(path + "/" + key) == got, "not the same");
  };
  const auto sample = text::render(conversation, *chat, tokenizer, options);
  if (!sample.ok()) {
    report.exact(path, false, sample.failure().message);
    return;
  }
  check("ids", sample->ids);
  check("labels", sample->labels);
  // Without a limit and with one token a picture: what the tokenizer itself gave.
  const auto whole = text::render(conversation, *chat, tokenizer, {.image_tokens = 1});
  if (!whole.ok()) throw InternalError("{}: {}", path, whole.failure().message);
  check("ids_one_token_per_image", whole->ids);
  check("supervised_text", tokenizer.decode(trained(whole->labels), form.keep_marks));
  folder.set_aside({(path + "/same_when_encoded_in_one_go").c_str()});
}

}  // namespace

void check_conversations(Folder& folder, Report& report) {
  const auto vicuna = text::find_template("vicuna_v1"), chatml = text::find_template("chatml");
  report.exact("system", folder.take("system") == Json(vicuna->system), "another text");
  report.exact("chatml_system", folder.take("chatml_system") == Json(chatml->system),
               "another text");
  report.exact("ignore", folder.number("ignore") == text::kIgnore, "another label");
  const Form forms[] = {
      {"vicuna_prefix_everywhere", "vicuna_v1", "sp_llama2/tokenizer.model"},
      {"vicuna_prefix_first_only", "vicuna_v1", "sp_llama2/tokenizer.model",
       text::DummyPrefix::kFirstOnly},
      {"chatml", "chatml", "bpe_qwen2/tokenizer.json", text::DummyPrefix::kEverywhere, true}};
  const size_t rows = folder.count("rows");
  for (size_t i = 0; i < rows; ++i)
    folder.set_aside({("rows/" + std::to_string(i) + "/name").c_str()});
  for (const Form& form : forms) {
    const auto tokenizer = text::load_tokenizer(tokenizer_path(folder, form.tokenizer_file),
                                                {.dummy_prefix = form.dummy});
    const std::string id =
        "image_id/" + form.tokenizer_file.substr(0, form.tokenizer_file.find('/'));
    if (folder.has(id)) report.exact(id, folder.number(id) == tokenizer->image_id(), "another id");
    for (size_t i = 0; i < rows; ++i)
      check_row(folder, report, form, *tokenizer, "rows/" + std::to_string(i));
  }
}

}  // namespace mm::oracle
