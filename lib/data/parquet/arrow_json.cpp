#include "lib/data/parquet/arrow_json.h"

#include <arrow/array/array_dict.h>
#include <arrow/array/array_nested.h>
#include <arrow/array/array_primitive.h>
#include <arrow/type.h>

#include <vector>

#include "lib/base/error.h"
#include "lib/text/utf8.h"

namespace mm::data {
namespace {

constexpr int kMaxDepth = 16;

Json convert(const arrow::Array& array, int64_t i, int depth);

template <typename Array>
Json number(const arrow::Array& array, int64_t i) {
  return static_cast<const Array&>(array).Value(i);
}

template <typename Array>
Json text_of(const arrow::Array& array, int64_t i) {
  const auto view = static_cast<const Array&>(array).GetView(i);
  if (!text::is_valid_utf8(view)) throw DataError("a cell is not UTF-8");
  return std::string(view);
}

template <typename Array>
Json binary_of(const arrow::Array& array, int64_t i) {
  const auto view = static_cast<const Array&>(array).GetView(i);
  return Json::binary(std::vector<uint8_t>(view.begin(), view.end()));
}

template <typename Array>
Json list_of(const arrow::Array& array, int64_t i, int depth) {
  const auto& list = static_cast<const Array&>(array);
  Json json = Json::array();
  for (int64_t at = list.value_offset(i), end = at + list.value_length(i); at < end; ++at)
    json.push_back(convert(*list.values(), at, depth));
  return json;
}

Json struct_of(const arrow::Array& array, int64_t i, int depth) {
  const auto& object = static_cast<const arrow::StructArray&>(array);
  Json json = Json::object();
  for (int f = 0; f < object.num_fields(); ++f)
    json[object.struct_type()->field(f)->name()] = convert(*object.field(f), i, depth);
  return json;
}

Json nested(const arrow::Array& array, int64_t i, int depth) {
  switch (array.type_id()) {
    case arrow::Type::LIST:
      return list_of<arrow::ListArray>(array, i, depth);
    case arrow::Type::LARGE_LIST:
      return list_of<arrow::LargeListArray>(array, i, depth);
    case arrow::Type::FIXED_SIZE_LIST:
      return list_of<arrow::FixedSizeListArray>(array, i, depth);
    case arrow::Type::STRUCT:
      return struct_of(array, i, depth);
    case arrow::Type::DICTIONARY: {
      const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
      return convert(*dictionary.dictionary(), dictionary.GetValueIndex(i), depth);
    }
    default:
      return nullptr;
  }
}

Json convert(const arrow::Array& array, int64_t i, int depth) {
  if (depth == kMaxDepth) throw DataError("a cell is nested deeper than {}", kMaxDepth);
  if (array.IsNull(i)) return nullptr;
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      return number<arrow::BooleanArray>(array, i);
    case arrow::Type::INT8:
      return number<arrow::Int8Array>(array, i);
    case arrow::Type::INT16:
      return number<arrow::Int16Array>(array, i);
    case arrow::Type::INT32:
      return number<arrow::Int32Array>(array, i);
    case arrow::Type::INT64:
      return number<arrow::Int64Array>(array, i);
    case arrow::Type::UINT8:
      return number<arrow::UInt8Array>(array, i);
    case arrow::Type::UINT16:
      return number<arrow::UInt16Array>(array, i);
    case arrow::Type::UINT32:
      return number<arrow::UInt32Array>(array, i);
    case arrow::Type::UINT64:
      return number<arrow::UInt64Array>(array, i);
    case arrow::Type::FLOAT:
      return number<arrow::FloatArray>(array, i);
    case arrow::Type::DOUBLE:
      return number<arrow::DoubleArray>(array, i);
    case arrow::Type::STRING:
      return text_of<arrow::StringArray>(array, i);
    case arrow::Type::LARGE_STRING:
      return text_of<arrow::LargeStringArray>(array, i);
    case arrow::Type::BINARY:
      return binary_of<arrow::BinaryArray>(array, i);
    case arrow::Type::LARGE_BINARY:
      return binary_of<arrow::LargeBinaryArray>(array, i);
    default:
      return nested(array, i, depth + 1);
  }
}

}  // namespace

Json arrow_to_json(const arrow::Array& array, int64_t i) { return convert(array, i, 0); }

}  // namespace mm::data
