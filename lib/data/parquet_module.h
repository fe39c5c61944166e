#pragma once
#include "lib/data/source.h"

namespace mm::data {

/// What libmm_parquet.so exports under the name kParquetEntry: opens a Parquet file. The caller
/// owns the source; errors are thrown as open_source says.
using OpenParquet = RecordSource* (*)(const SourceOptions&);
inline constexpr const char* kParquetEntry = "mm_open_parquet";
/// Exported as a string under this name; a module of another build is refused.
inline constexpr const char* kParquetVersion = "mm_parquet_version";
inline constexpr const char* kParquetVersionText = "mmkit-parquet-1";

}  // namespace mm::data
