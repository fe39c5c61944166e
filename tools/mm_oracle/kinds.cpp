#include "tools/mm_oracle/kinds.h"

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "tools/mm_oracle/not_built.h"

namespace mm::oracle {
namespace {

constexpr std::array<Kind, 17> kKinds = {{
    {"llava", "LLaVA, llama", check_llava},
    {"llava_qwen2", "LLaVA, qwen2", check_llava},
    {"llava_siglip", "LLaVA, siglip", check_llava},
    {"llava_next", "LLaVA any resolution, next", check_llava},
    {"llava_onevision", "LLaVA any resolution, onevision", check_llava},
    {"qwen2_5_vl", "Qwen2.5-VL", check_llava},
    {"dit", "DiT, class-conditional", check_dit},
    {"pixart", "PixArt", check_pixart},
    {"sd3", "SD3 MMDiT, rectified flow", check_sd3},
    {"vae", "AutoencoderKL", check_vae},
    {"text_encoders", "text encoders", check_text_encoders},
    {"moe", "mixture of experts", nullptr},
    {"metrics", "metrics", check_metrics},
    {"images", "picture preprocessing", check_images},
    {"schedules", "schedules", check_schedules},
    {"tokenizers", "tokenizers", check_tokenizers},
    {"conversations", "conversations", check_conversations},
}};

}  // namespace

const Kind& kind_of(const Folder& folder) {
  const auto* kind = std::ranges::find(kKinds, folder.what(), &Kind::what);
  if (kind == kKinds.end()) {
    throw DataError("{}: unknown kind of folder, \"what\" is \"{}\" in expected.json",
                    folder.directory().string(), folder.what());
  }
  return *kind;
}

Report compare(const Kind& kind, Folder& folder) {
  Report report;
  folder.set_aside({"what"});
  if (kind.check != nullptr) kind.check(folder, report);
  for (const std::string& name : folder.untouched()) {
    if (is_not_built(kind.name, name)) {
      report.not_built(name);
    } else {
      report.unknown(name);
    }
  }
  return report;
}

}  // namespace mm::oracle
