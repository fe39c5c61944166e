#pragma once
// Tiny diffusion runs behind frozen encoders.
#include <doctest/doctest.h>

#include "tests/run/tiny_diffusion.h"
#include "tests/run/tiny_encoders.h"

namespace mm::run::test {

inline std::filesystem::path toy() { return data::test::toy_tokenizer(); }

/// CLIP of width 8, CLIP of width 12 with a projection and a tokenizer of its own, T5 of width 24.
inline std::vector<std::filesystem::path> three_encoders(const data::test::TempDir& dir) {
  const std::filesystem::path reversed = write_reversed_tokenizer(toy(), dir / "reversed.json");
  return {write_encoder(dir / "clip_l", tiny_clip_config(8, 0), toy(), 3),
          write_encoder(dir / "clip_g", tiny_clip_config(12, 10), reversed, 4),
          write_encoder(dir / "t5", tiny_t5_config(24), toy(), 5)};
}

inline std::vector<std::string> keys_of(const std::vector<std::filesystem::path>& text) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < text.size(); ++i)
    keys.push_back((i == 0 ? "model.text_model" : "model.text_model_" + std::to_string(i + 1)) +
                   "=" + text[i].string());
  return keys;
}

inline std::vector<std::string> joined(std::vector<std::string> a,
                                       const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The tiny recipe on latents and the states of `text`, encoded on the way.
inline std::vector<std::string> online_keys(const std::vector<std::filesystem::path>& text) {
  return joined(keys_of(text),
                {"model.vae=" + tiny_vae().string(), "model.transformer.patch=1",
                 "stage.0.train=[\"transformer\"]", "stage.0.lr={ transformer = 3e-3 }"});
}

inline Outcome run_with(const data::test::TempDir& dir, const std::string& name,
                        const std::vector<std::string>& keys, int ranks = 1) {
  return run_threads(tiny_diffusion_recipe(dir.path(), keys), dir / name, ranks);
}

inline void check_same_losses(const Outcome& a, const Outcome& b, double tolerance) {
  REQUIRE(a.records.size() == b.records.size());
  for (size_t i = 0; i < a.records.size(); ++i)
    CHECK(a.records[i].loss == doctest::Approx(b.records[i].loss).epsilon(tolerance));
}

}  // namespace mm::run::test
