#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lib/data/pack_options.h"

namespace mm::data {

/// The word of SourceOptions::labels for folders.
inline constexpr std::string_view kFolderLabels = "folder";
/// Name of the folder that holds the picture: "a/b/c.png" gives "b"; empty for "c.png".
std::string folder_label(std::string_view picture);

/// Names of the classes in the order of their ids: the lines of `class_names`; else those that the
/// source has, which is read once for it: whole numbers stand for themselves, with every number up
/// to the largest a class ("0", "1", ...), other names are sorted by their bytes. Throws DataError
/// for names that are empty or twice there, over a million classes, or none.
std::vector<std::string> class_names_of(const PackOptions& options);

}  // namespace mm::data
