#pragma once
#include <string>
#include <vector>

#include "lib/image/geometry.h"

namespace mm::bench {

/// Picture files held in memory, so that no disk is measured.
struct Pictures {
  std::vector<std::string> files;
  std::vector<std::string> paths;  ///< of the files; none of pictures that were made
  double megapixels = 0;           ///< of all together
};

/// Reads `paths` (a folder stands for the .jpg, .jpeg and .png files in and below it, sorted).
/// Files that do not decode are left out.
Pictures load_pictures(const std::vector<std::string>& paths);
/// `count` JPEG files of `size`, quality 90, 4:2:0: soft shapes with grain, the same for every run.
Pictures make_pictures(int count, image::Size size);
/// Writes the files as picture-NN.jpg, so that a peer can measure the same bytes.
void save_pictures(const Pictures& pictures, const std::string& directory);

/// Files per second of sizes and orientations read from headers alone (probe_file), one thread,
/// processor time, the files in the system's cache; the median of `rounds`.
double scan_rate(const Pictures& pictures, int rounds);

/// Megapixels per second of each kernel set of this CPU, resizing whole pictures in memory.
struct KernelRate {
  std::string name;
  double megapixels_s = 0;
};
std::vector<KernelRate> resize_rates(const Pictures& pictures,
                                     const image::Preparation& preparation, int rounds);

/// Processor seconds per pass over all pictures: the medians of `rounds` interleaved rounds, one
/// thread.
struct Timing {
  double decode_s = 0;    ///< libjpeg or libpng alone: rows decoded and dropped; the limit
  double prepare_s = 0;   ///< decode_prepared: decode and resize while rows arrive
  double separate_s = 0;  ///< decode to a whole picture, then prepare
};
Timing measure(const Pictures& pictures, const image::Preparation& preparation, int rounds);

}  // namespace mm::bench
