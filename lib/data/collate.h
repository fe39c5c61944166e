#pragma once
#include <span>
#include <string>
#include <vector>

#include "lib/data/augment.h"
#include "lib/data/micro_batch.h"
#include "lib/data/sample.h"
#include "lib/data/sample_store.h"

namespace mm::data {

/// Adds a sample to the end of a micro-batch. Positions begin at 0; targets are shifted inside the
/// sample only, its last position has none (kIgnore), so nothing crosses a seam. Example: samples
/// 11 12 13 and 21 22 23 24, all trainable, give targets 12 13 -100 22 23 24 -100.
void append_sample(const Sample& sample, uint64_t id, const PictureLayout& layout,
                   MicroBatch& batch);

/// The same without the pixels, which the caller has put at the end of the batch's.
void append_text(const Sample& sample, uint64_t id, const PictureLayout& layout, MicroBatch& batch);

/// An empty micro-batch, cu_seqlens {0}. Its pixels will come from `memory`.
MicroBatch empty_micro_batch(const PictureLayout& layout,
                             const PixelAllocator<uint8_t>& memory = {});

/// A sample of the planned sizes and weight 0, for one whose stored bytes are damaged: placeholders
/// first, then token 0, no trainable token, black pictures. In a set of varied pictures no token
/// stands for them; in a bucketed set they have the shape of the bucket.
Sample stand_in(const SampleSize& size, const PictureLayout& layout);

/// A stored sample that could not be used, for the run's ledger.
struct BadRead {
  uint64_t sample_id = 0;
  std::string key, kind, message;
};

struct Assembled {
  MicroBatch batch;
  std::vector<BadRead> bad;
};

struct AssembleOptions {
  Augmentation augmentation;
  uint64_t epoch = 0;
  PixelAllocator<uint8_t> pixel_memory;
};

/// Reads and collates one pack, in the pack's order; the store puts pixels straight into the batch,
/// or leaves them out (SampleStore::gives_pixels).
/// `sizes` are the planned ones. Thread-safe. Throws IoError.
Assembled assemble(const SampleStore& store, std::span<const SampleSize> sizes, const Pack& pack,
                   const AssembleOptions& options = {});

}  // namespace mm::data
