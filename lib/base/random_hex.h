#pragma once
#include <cstddef>
#include <string>

namespace mm {

/// `bytes` (at most 256) from the system's generator as lower-case hexadecimal digits: names that
/// must not meet, such as run and job ids. Never for training, whose draws come from Philox. Throws
/// IoError.
std::string random_hex(size_t bytes);

}  // namespace mm
