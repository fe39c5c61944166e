#pragma once

namespace mm::run::test {

/// A tiny LLaVA on the set "data" beside the recipe, pictures of 8 pixels, two steps. Behind [run],
/// if there is one.
inline constexpr const char* kTwoStepRecipe = R"([model.vision]
hidden = 8
layers = 2
heads = 2
patch = 4
image_side = 8
[model.language]
hidden = 16
layers = 2
heads = 4
kv_heads = 2
mlp = 24
[[stage]]
name = "all"
data = "data"
steps = 2
sequence_length = 64
packs_per_step = 2
lr = { vision = 1e-2, projector = 1e-2, language = 1e-2 }
)";

}  // namespace mm::run::test
