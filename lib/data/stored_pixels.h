#pragma once
#include "lib/data/pixel_memory.h"
#include "lib/data/record_sum.h"
#include "lib/data/sample.h"
#include "lib/data/sample_store.h"

namespace mm::data {

/// Appends the pixels of a stored picture, all its tiles: raw ones are copied once, files are
/// decoded into their place. What the picture claims is compared with `layout` and with its files'
/// headers before memory is taken for it; a tile over 128 MiB proves itself row by row first.
/// Throws DataError saying what is wrong; `pixels` then holds anything behind its former end.
/// `sum`, if given, is that of the picture's record and goes on over raw pixels as they are copied.
void append_pixels(const StoredPicture& picture, const PictureLayout& layout, PixelVector& pixels,
                   RecordSum* sum = nullptr);

}  // namespace mm::data
