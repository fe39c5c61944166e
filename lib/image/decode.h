#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/image/image.h"
#include "lib/image/probe.h"

namespace mm::image {

/// Turn pixels by the file's orientation tag, or leave them as stored.
enum class Orient { kApply, kIgnore };
/// What stands behind transparent pixels, or that alpha is dropped: then the colour that is hidden
/// under zero alpha comes out.
struct Alpha {
  bool drop = false;
  Colour behind{255, 255, 255};
  bool operator==(const Alpha&) const = default;
};

/// "apply" "ignore"; "white" "black" "drop" "#rrggbb". Nothing for other words.
std::optional<Orient> orient_from_name(std::string_view name);
std::optional<Alpha> alpha_from_name(std::string_view name);

struct DecodeOptions {
  Orient orient = Orient::kApply;
  int untagged = 1;  ///< orientation 1..8 of a file that carries none
  Alpha alpha;
  Limits limits;
};

struct Decoded {
  Image image;
  Header header;
  std::vector<std::string>
      notes;  ///< harmless oddities: "icc ignored", "trailing bytes: 200", "png: iCCP: ..."
  /// What the decoder passed over. "stray_bytes": between a JPEG's segments, pixels only where they
  /// stand behind a scan; "damaged_part": restart intervals of a JPEG hold too many bytes, too few
  /// or bad codes, the rest of the picture is right.
  std::vector<Failure> damage;
};

/// `probe` within the limits of the options, and with their orientation for a file that has none.
Result<Header> probe_for(std::span<const std::byte> file, const DecodeOptions& options);

/// Decodes a whole JPEG, PNG, WebP or GIF file to upright 8-bit RGB, the first picture of several.
/// JPEG: accurate integer DCT, fancy upsampling; CMYK and YCCK by the product form R = C*K/255 on
/// inverted samples. PNG: 16-bit samples become round(v/257), palettes and tRNS are expanded. WebP
/// and GIF: the first frame on its canvas, which is transparent around it (a GIF without a
/// transparent colour: colour 0). Alpha is composited: out = round((c*a + behind*(255-a)) / 255).
/// Colour profiles and gamma are ignored. All or nothing: damage to the picture is a failure, never
/// a partial picture, but for what `damage` lists. Memory grows with the rows that were really
/// decoded. Thread-safe. Failure kinds are those of `probe`; libjpeg's premature end counts as
/// "truncated".
Result<Decoded> decode(std::span<const std::byte> file, const DecodeOptions& options = {});

}  // namespace mm::image
