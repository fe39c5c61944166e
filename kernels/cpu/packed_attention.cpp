#include "kernels/packed_attention.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/tile_product.h"

namespace mm::kernels {
namespace {

// A tile of scores: kQueries by kKeys, 36 KiB in fp32. Keys and values of a sample are laid out for
// tile_product once for all query heads on them; 16-bit operands are widened by the same copy.
constexpr int64_t kQueries = 48, kKeys = 192;

/// The rows of one head in one sample.
template <typename T>
struct HeadRows {
  T* data;
  int64_t rows, stride, head_size;
};

template <typename T>
MM_CLONES void copy_rows(HeadRows<const T> from, Acc<T> factor, Acc<T>* to) {
  for (int64_t i = 0; i < from.rows; ++i) {
    const T* row = from.data + i * from.stride;
    Acc<T>* out = to + i * from.head_size;
    for (int64_t d = 0; d < from.head_size; ++d) out[d] = load(row[d]) * factor;
  }
}

/// Panels whose depth is the rows and whose columns are the head's elements.
template <typename T>
MM_CLONES Panels<Acc<T>> element_panels(HeadRows<const T> from, Acc<T> factor, Acc<T>* to) {
  constexpr int64_t kWidth = kPanel<Acc<T>>;
  for (int64_t d = 0; d < from.head_size; d += kWidth) {
    const int64_t width = std::min(kWidth, from.head_size - d);
    Acc<T>* panel = to + d * from.rows;
    for (int64_t i = 0; i < from.rows; ++i) {
      const T* row = from.data + i * from.stride + d;
      Acc<T>* out = panel + i * kWidth;
      for (int64_t c = 0; c < width; ++c) out[c] = load(row[c]) * factor;
      for (int64_t c = width; c < kWidth; ++c) out[c] = 0;
    }
  }
  return {to, from.rows * kWidth};
}

/// Panels whose depth is the head's elements and whose columns are the rows.
template <typename T>
MM_CLONES Panels<Acc<T>> row_panels(HeadRows<const T> from, Acc<T>* to) {
  constexpr int64_t kWidth = kPanel<Acc<T>>;
  for (int64_t i = 0; i < from.rows; i += kWidth) {
    const int64_t width = std::min(kWidth, from.rows - i);
    Acc<T>* panel = to + i * from.head_size;
    for (int64_t d = 0; d < from.head_size; ++d) {
      const T* column = from.data + i * from.stride + d;
      for (int64_t c = 0; c < width; ++c) panel[d * kWidth + c] = load(column[c * from.stride]);
      for (int64_t c = width; c < kWidth; ++c) panel[d * kWidth + c] = 0;
    }
  }
  return {to, from.head_size * kWidth};
}

template <typename T>
MM_CLONES void write_rows(const Acc<T>* from, int64_t from_stride, Acc<T> factor, HeadRows<T> to) {
  for (int64_t i = 0; i < to.rows; ++i) {
    T* row = to.data + i * to.stride;
    for (int64_t d = 0; d < to.head_size; ++d) store(from[i * from_stride + d] * factor, row[d]);
  }
}

/// Queries [query, query + queries) against keys [key, key + keys) of a sample.
struct Tile {
  int64_t query, queries, key, keys;
};
/// The tile's keys that its query row sees are [begin, end), counted from the tile's first.
struct Span {
  int64_t begin, end;
};
Span seen(const PackedAttentionShape& s, const Tile& t, int64_t row, int64_t length) {
  const int64_t begin = first_key(s, t.query + row, 0) - t.key,
                end = end_key(s, t.query + row, length) - t.key;
  return {std::clamp<int64_t>(begin, 0, t.keys), std::clamp<int64_t>(end, 0, t.keys)};
}

/// Calls f(tile) for all tiles of a sample that hold pairs, a row of tiles at a time.
template <typename A, typename F>
void for_tiles(const PackedAttentionShape& s, int64_t length, int64_t query, F&& f) {
  const int64_t queries = std::min(kQueries, length - query);
  const int64_t begin = first_key(s, query, 0) / kPanel<A> * kPanel<A>;
  const int64_t end = end_key(s, query + queries - 1, length);
  for (int64_t key = begin; key < end; key += kKeys)
    f(Tile{query, queries, key, std::min(kKeys, end - key)});
}

/// One pass of the running softmax over a tile: scores become weights, 0 where a query sees
/// nothing. `highest` and `total` go on from tile to tile, `sums` [queries, width] is rescaled
/// where a row's highest score rises.
template <typename A>
struct SoftmaxRows {
  A *scores, *highest, *total, *sums;
  int64_t width;
};

template <typename A>
[[gnu::always_inline]] inline A largest(const A* row, Span span, A start) {
  A lanes[kLanes];
  for (int l = 0; l < kLanes; ++l) lanes[l] = start;
  int64_t j = span.begin;
  for (; j + kLanes <= span.end; j += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = row[j + l] > lanes[l] ? row[j + l] : lanes[l];
  }
  for (; j < span.end; ++j) lanes[0] = row[j] > lanes[0] ? row[j] : lanes[0];
  for (int l = 1; l < kLanes; ++l) lanes[0] = lanes[l] > lanes[0] ? lanes[l] : lanes[0];
  return lanes[0];
}

template <typename A>
[[gnu::always_inline]] inline A sum_of(const A* row, Span span) {
  A lanes[kLanes] = {};
  int64_t j = span.begin;
  for (; j + kLanes <= span.end; j += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] += row[j + l];
  }
  for (; j < span.end; ++j) lanes[0] += row[j];
  return sum_lanes(lanes);
}

template <typename A>
[[gnu::always_inline]] inline void clear_outside(A* row, Span span, int64_t keys) {
  for (int64_t j = 0; j < span.begin; ++j) row[j] = 0;
  for (int64_t j = span.end; j < keys; ++j) row[j] = 0;
}

template <typename A>
MM_CLONES void softmax_rows(const PackedAttentionShape& s, const Tile& t, int64_t length,
                            const SoftmaxRows<A>& rows) {
  for (int64_t i = 0; i < t.queries; ++i) {
    A* row = rows.scores + i * kKeys;
    const Span span = seen(s, t, i, length);
    clear_outside(row, span, t.keys);
    if (span.begin >= span.end) continue;
    const A before = rows.highest[i], highest = largest(row, span, before);
    for (int64_t j = span.begin; j < span.end; ++j) row[j] = exponential(row[j] - highest);
    const A sum = sum_of(row, span);
    if (highest == before) {
      rows.total[i] += sum;
      continue;
    }
    const A rescale = exponential(before - highest);
    rows.highest[i] = highest;
    rows.total[i] = rows.total[i] * rescale + sum;
    A* sums = rows.sums + i * rows.width;
    for (int64_t d = 0; d < rows.width; ++d) sums[d] *= rescale;
  }
}

/// Scores become weights p, products do v become dz = p (do v - delta).
template <typename A>
struct GradientRows {
  A *scores, *products;
  const A *lse, *delta;  ///< of the tile's first query
  int64_t stride;        ///< from one query's lse and delta to the next
};

template <typename A>
MM_CLONES void gradient_rows(const PackedAttentionShape& s, const Tile& t, int64_t length,
                             const GradientRows<A>& rows) {
  for (int64_t i = 0; i < t.queries; ++i) {
    A *p = rows.scores + i * kKeys, *dz = rows.products + i * kKeys;
    const Span span = seen(s, t, i, length);
    clear_outside(p, span, t.keys);
    clear_outside(dz, span, t.keys);
    const A lse = rows.lse[i * rows.stride], delta = rows.delta[i * rows.stride];
    for (int64_t j = span.begin; j < span.end; ++j) {
      p[j] = exponential(p[j] - lse);
      dz[j] = p[j] * (dz[j] - delta);
    }
  }
}

template <typename T>
MM_CLONES void row_products(HeadRows<const T> a, HeadRows<const T> b, int64_t stride,
                            Acc<T>* products) {
  const int64_t whole = a.head_size / kLanes * kLanes;
  for (int64_t i = 0; i < a.rows; ++i) {
    const T *x = a.data + i * a.stride, *y = b.data + i * b.stride;
    Acc<T> lanes[kLanes] = {};
    for (int64_t d = 0; d < whole; d += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] += load(x[d + l]) * load(y[d + l]);
    }
    for (int64_t d = whole; d < a.head_size; ++d) lanes[d - whole] += load(x[d]) * load(y[d]);
    products[i * stride] = sum_lanes(lanes);
  }
}

/// A piece's place, and its head rows of any of the operands.
struct Place {
  const PackedAttentionShape& s;
  int64_t begin, end, kv;
  int64_t length() const { return end - begin; }
  int64_t group() const { return s.heads / s.kv_heads; }
  template <typename T>
  HeadRows<T> of_query(T* x, int64_t h) const {
    return {x + (begin * s.heads + kv * group() + h) * s.head_size, length(), s.heads * s.head_size,
            s.head_size};
  }
  template <typename T>
  HeadRows<T> of_key(T* x) const {
    return {x + (begin * s.kv_heads + kv) * s.head_size, length(), s.kv_heads * s.head_size,
            s.head_size};
  }
  /// [T, H] at this piece's first token.
  template <typename A>
  A* of_row(A* x, int64_t h) const {
    return x + begin * s.heads + kv * group() + h;
  }
};
Place place_of(const PackedAttentionShape& s, const int64_t* cu_seqlens, int64_t piece) {
  const int64_t sample = piece % s.samples;
  return {s, cu_seqlens[sample], cu_seqlens[sample + 1], piece / s.samples};
}

template <typename T>
HeadRows<T> some_rows(HeadRows<T> x, int64_t begin, int64_t count) {
  return {x.data + begin * x.stride, count, x.stride, x.head_size};
}

template <typename A>
Panels<A> from_column(Panels<A> p, int64_t column) {  // of row panels, column a multiple of kPanel
  return {p.data + column / kPanel<A> * p.stride, p.stride};
}
template <typename A>
Panels<A> from_depth(Panels<A> p, int64_t depth) {
  return {p.data + depth * kPanel<A>, p.stride};
}

/// Scratch that grows to what the largest sample needs.
template <typename A>
A* room(std::vector<A>& scratch, int64_t count) {
  if (static_cast<int64_t>(scratch.size()) < count) scratch.resize(static_cast<size_t>(count));
  return scratch.data();
}

template <typename A>
struct ForwardScratch {
  std::vector<A> keys, values, query, scores, sums, highest, total;
};

template <typename T>
void forward_piece(const Place& at, const PackedAttentionForward<T>& p,
                   ForwardScratch<Acc<T>>& scratch) {
  using A = Acc<T>;
  const PackedAttentionShape& s = at.s;
  const int64_t D = s.head_size, width = panel_multiple<A>(D), length = at.length();
  const auto keys =
      row_panels<T>(at.of_key(p.k), room(scratch.keys, panel_multiple<A>(length) * D));
  const auto values = element_panels<T>(at.of_key(p.v), A(1), room(scratch.values, length * width));
  A *query = room(scratch.query, kQueries * D), *scores = room(scratch.scores, kQueries * kKeys),
    *sums = room(scratch.sums, kQueries * width), *highest = room(scratch.highest, kQueries),
    *total = room(scratch.total, kQueries);
  for (int64_t h = 0; h < at.group(); ++h) {
    for (int64_t first = 0; first < length; first += kQueries) {
      const int64_t queries = std::min(kQueries, length - first);
      copy_rows<T>(some_rows(at.of_query(p.q, h), first, queries), A(s.scale), query);
      std::fill(sums, sums + queries * width, A(0));
      std::fill(highest, highest + queries, A(-1e30));
      std::fill(total, total + queries, A(0));
      for_tiles<A>(s, length, first, [&](const Tile& t) {
        tile_product<A>({queries, D, panel_multiple<A>(t.keys)}, {query, D, 1},
                        from_column(keys, t.key), {scores, kKeys, true});
        softmax_rows<A>(s, t, length, {scores, highest, total, sums, width});
        tile_product<A>({queries, t.keys, width}, {scores, kKeys, 1}, from_depth(values, t.key),
                        {sums, width});
      });
      for (int64_t i = 0; i < queries; ++i) {
        write_rows<T>(sums + i * width, width, 1 / total[i],
                      some_rows(at.of_query(p.out, h), first + i, 1));
        *at.of_row(p.lse, h + (first + i) * s.heads) = highest[i] + std::log(total[i]);
      }
    }
  }
}

template <typename A>
struct BackwardScratch {
  std::vector<A> key_columns, value_columns, keys;         // of the piece
  std::vector<A> queries, d_outs, query_rows, d_out_rows;  // of a head
  std::vector<A> scores, products, dq, dk, dv;
};

/// A head's part of a piece.
template <typename A>
struct BackwardHead {
  Panels<A> key_columns, value_columns, keys, queries, d_outs;
  const A *query_rows, *d_out_rows;  ///< [length, D]
  A *scores, *products;              ///< [kQueries, kKeys]
  A *dq, *dk, *dv;                   ///< [length, width]
  const A *lse, *delta;
};

template <typename A>
void backward_tile(const Place& at, const Tile& t, const BackwardHead<A>& head) {
  const int64_t D = at.s.head_size, width = panel_multiple<A>(D);
  const ProductShape of_scores{t.queries, D, panel_multiple<A>(t.keys)};
  tile_product<A>(of_scores, {head.query_rows + t.query * D, D, 1},
                  from_column(head.key_columns, t.key), {head.scores, kKeys, true});
  tile_product<A>(of_scores, {head.d_out_rows + t.query * D, D, 1},
                  from_column(head.value_columns, t.key), {head.products, kKeys, true});
  const int64_t row = t.query * at.s.heads;
  gradient_rows<A>(at.s, t, at.length(),
                   {head.scores, head.products, head.lse + row, head.delta + row, at.s.heads});
  const ProductShape of_keys{t.keys, t.queries, width};
  tile_product<A>(of_keys, {head.scores, 1, kKeys}, from_depth(head.d_outs, t.query),
                  {head.dv + t.key * width, width});
  tile_product<A>(of_keys, {head.products, 1, kKeys}, from_depth(head.queries, t.query),
                  {head.dk + t.key * width, width});
  tile_product<A>({t.queries, t.keys, width}, {head.products, kKeys, 1},
                  from_depth(head.keys, t.key), {head.dq + t.query * width, width});
}

template <typename T>
void backward_piece(const Place& at, const PackedAttentionBackward<T>& p,
                    BackwardScratch<Acc<T>>& scratch) {
  using A = Acc<T>;
  const PackedAttentionShape& s = at.s;
  const A scale = A(s.scale);
  const int64_t D = s.head_size, width = panel_multiple<A>(D), length = at.length();
  const int64_t elements = length * width, columns = panel_multiple<A>(length) * D;
  BackwardHead<A> head;
  head.key_columns = row_panels<T>(at.of_key(p.k), room(scratch.key_columns, columns));
  head.value_columns = row_panels<T>(at.of_key(p.v), room(scratch.value_columns, columns));
  head.keys = element_panels<T>(at.of_key(p.k), A(1), room(scratch.keys, elements));
  head.scores = room(scratch.scores, kQueries * kKeys);
  head.products = room(scratch.products, kQueries * kKeys);
  head.dq = room(scratch.dq, elements);
  head.dk = room(scratch.dk, elements);
  head.dv = room(scratch.dv, elements);
  std::fill(head.dk, head.dk + elements, A(0));
  std::fill(head.dv, head.dv + elements, A(0));
  for (int64_t h = 0; h < at.group(); ++h) {
    const HeadRows<const T> q = at.of_query(p.q, h), d_out = at.of_query(p.d_out, h);
    A *query_rows = room(scratch.query_rows, length * D),
      *d_out_rows = room(scratch.d_out_rows, length * D), *delta = at.of_row(p.delta, h);
    copy_rows<T>(q, scale, query_rows);
    copy_rows<T>(d_out, A(1), d_out_rows);
    row_products<T>(d_out, at.of_query(p.out, h), s.heads, delta);
    head.queries = element_panels<T>(q, scale, room(scratch.queries, elements));
    head.d_outs = element_panels<T>(d_out, A(1), room(scratch.d_outs, elements));
    head.query_rows = query_rows;
    head.d_out_rows = d_out_rows;
    head.lse = at.of_row(p.lse, h);
    head.delta = delta;
    std::fill(head.dq, head.dq + elements, A(0));
    for (int64_t first = 0; first < length; first += kQueries)
      for_tiles<A>(s, length, first, [&](const Tile& t) { backward_tile<A>(at, t, head); });
    write_rows<T>(head.dq, width, scale, at.of_query(p.dq, h));
  }
  write_rows<T>(head.dk, width, A(1), at.of_key(p.dk));
  write_rows<T>(head.dv, width, A(1), at.of_key(p.dv));
}

}  // namespace

template <typename T>
void packed_attention_forward(const PackedAttentionShape& shape, const PackedAttentionForward<T>& p,
                              Pieces pieces) {
  ForwardScratch<Acc<T>> scratch;
  for (int64_t piece = pieces.begin; piece < pieces.end; ++piece)
    forward_piece<T>(place_of(shape, p.cu_seqlens, piece), p, scratch);
}

template <typename T>
void packed_attention_backward(const PackedAttentionShape& shape,
                               const PackedAttentionBackward<T>& p, Pieces pieces) {
  BackwardScratch<Acc<T>> scratch;
  for (int64_t piece = pieces.begin; piece < pieces.end; ++piece)
    backward_piece<T>(place_of(shape, p.cu_seqlens, piece), p, scratch);
}

#define MM_INSTANTIATE(T)                                                              \
  template void packed_attention_forward<T>(const PackedAttentionShape&,               \
                                            const PackedAttentionForward<T>&, Pieces); \
  template void packed_attention_backward<T>(const PackedAttentionShape&,              \
                                             const PackedAttentionBackward<T>&, Pieces);
MM_INSTANTIATE(double)
MM_INSTANTIATE(float)
MM_INSTANTIATE(Bf16)

}  // namespace mm::kernels
