// Einstein's summation as a chain of batched matrix products.
#include <algorithm>
#include <string>
#include <string_view>

#include "native_products.h"
#include "native_views.h"
#include "ops/support.h"
#include "ops_arithmetic.h"
#include "ops_copying.h"
#include "ops_linalg.h"
#include "ops_reductions.h"
#include "ops_views.h"

namespace weft::native {
namespace {

// The name of a dimension: its letter, or for those of "..." -1 (the last), -2 and so on, since an
// operand may have fewer of them.
using Labels = Dims;

struct Operand {
  Tensor value;
  Labels labels;  // one for each dimension
};

bool has(const Labels& labels, int64_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

int64_t place_of(const Labels& labels, int64_t label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

int64_t size_at(const Operand& part, int64_t label) {
  return part.value.size(place_of(part.labels, label));
}

std::string text_of(int64_t label) {
  return label < 0 ? "..." : std::string(1, static_cast<char>(label));
}

template <class Condition>
Labels those(const Labels& labels, Condition condition) {
  Labels result;
  for (const int64_t label : labels) {
    if (condition(label)) result.push_back(label);
  }
  return result;
}

// Equations ---------------------------------------------------------------------------------------

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The labels of a term such as "b...ij" for a tensor of `dim` dimensions.
Labels labels_of(std::string_view term, int64_t dim) {
  const size_t dots = term.find("...");
  const bool has_dots = dots != std::string_view::npos;
  const std::string_view before = term.substr(0, dots);
  const std::string_view after = has_dots ? term.substr(dots + 3) : std::string_view();
  const auto named = static_cast<int64_t>(before.size() + after.size());
  WEFT_CHECK(std::all_of(before.begin(), before.end(), is_letter) &&
                 std::all_of(after.begin(), after.end(), is_letter) && named <= dim &&
                 (has_dots || named == dim),
             "einsum: expected '", std::string(term), "' to name ", dim, " dimensions by letters");
  Labels labels;
  for (const char c : before) labels.push_back(c);
  for (int64_t i = dim - named; i > 0; --i) labels.push_back(-i);
  for (const char c : after) labels.push_back(c);
  return labels;
}

// Those of "..." in all operands, the first dimension first.
Labels dots_of(const std::vector<Operand>& parts) {
  Labels found;
  for (const Operand& part : parts) {
    for (const int64_t label : part.labels) {
      if (label < 0 && !has(found, label)) found.push_back(label);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Without "->": dots, and then the letters that occur once, in order.
Labels implied_result(const std::vector<Operand>& parts) {
  Labels result = dots_of(parts), letters;
  for (const Operand& part : parts) {
    for (const int64_t label : part.labels) {
      if (label >= 0) letters.push_back(label);
    }
  }
  std::sort(letters.begin(), letters.end());
  for (const int64_t label : letters) {
    if (std::count(letters.begin(), letters.end(), label) == 1) result.push_back(label);
  }
  return result;
}

Labels given_result(const std::vector<Operand>& parts, std::string_view right) {
  const size_t dots = right.find("...");
  Labels result;
  for (size_t i = 0; i < right.size(); ++i) {
    if (i == dots) {
      for (const int64_t label : dots_of(parts)) result.push_back(label);
      i += 2;
    } else {
      result.push_back(right[i]);
    }
  }
  for (const int64_t label : result) {
    const auto names = [label](const Operand& part) { return has(part.labels, label); };
    WEFT_CHECK(std::count(result.begin(), result.end(), label) == 1 &&
                   std::any_of(parts.begin(), parts.end(), names),
               "einsum: expected each label of the result once and among the operands, got '",
               text_of(label), "' in '", std::string(right), "'");
  }
  return result;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> terms;
  for (size_t start = 0;;) {
    const size_t end = text.find(separator, start);
    terms.push_back(text.substr(start, end == std::string_view::npos ? end : end - start));
    if (end == std::string_view::npos) return terms;
    start = end + 1;
  }
}

// Operands ----------------------------------------------------------------------------------------

void check_sizes(int64_t label, int64_t first, int64_t second) {
  WEFT_CHECK(first == second, "einsum: expected one size for the label '", text_of(label),
             "', got ", first, " and ", second);
}

// A label that occurs twice in one operand walks along the diagonal.
Operand diagonals(Operand part) {
  for (size_t i = 0; i < part.labels.size();) {
    const int64_t label = part.labels[i];
    const int64_t first = place_of(part.labels, label), second = static_cast<int64_t>(i);
    ++i;
    if (first == second) continue;
    check_sizes(label, part.value.size(first), part.value.size(second));
    part.value = ops::diagonal(part.value, 0, first, second);
    part.labels.erase(static_cast<size_t>(second));
    part.labels.erase(static_cast<size_t>(first));
    part.labels.push_back(label);
    i = 0;
  }
  return part;
}

enum class How { kSum, kSqueeze };

// Without the dimensions of some labels: summed, or of size 1 and left out.
Operand without(const Operand& part, const Labels& gone, How how) {
  Dims dims;
  for (const int64_t label : gone) dims.push_back(place_of(part.labels, label));
  if (dims.empty()) return part;
  return {how == How::kSum ? ops::sum(part.value, IntList(dims)) : ops::squeeze(part.value, dims),
          those(part.labels, [&](int64_t label) { return !has(gone, label); })};
}

Dims dims_of(const Operand& part, const Labels& a, const Labels& b, const Labels& c) {
  Dims result;
  for (const Labels* labels : {&a, &b, &c}) {
    for (const int64_t label : *labels) result.push_back(place_of(part.labels, label));
  }
  return result;
}

Dims sizes_of(const Operand& part, const Labels& labels) {
  Dims result;
  for (const int64_t label : labels) result.push_back(size_at(part, label));
  return result;
}

int64_t product(const Dims& sizes) {
  int64_t result = 1;
  for (const int64_t size : sizes) result *= size;
  return result;
}

// Drops what only one of two operands has and nobody wants, and what has size 1 in one of them: it
// is broadcast, so as good as absent.
void prepare(Operand& a, Operand& b, const Labels& wanted) {
  const Labels both = those(a.labels, [&](int64_t label) { return has(b.labels, label); });
  const auto unwanted = [&](int64_t label) { return !has(both, label) && !has(wanted, label); };
  Labels one_a, one_b;
  for (const int64_t label : both) {
    const int64_t in_a = size_at(a, label), in_b = size_at(b, label);
    if (in_a == 1 && in_b != 1) {
      one_a.push_back(label);
    } else if (in_b == 1 && in_a != 1) {
      one_b.push_back(label);
    } else {
      check_sizes(label, in_a, in_b);
    }
  }
  const auto drop = [&](Operand& part, const Labels& single, const Labels& alone) {
    part = without(part, those(part.labels, unwanted), How::kSum);
    part = without(part, single, How::kSqueeze);
    part = without(part, those(alone, [&](int64_t x) { return !has(wanted, x); }), How::kSum);
  };
  drop(a, one_a, one_b);
  drop(b, one_b, one_a);
}

// Without the labels of size 1 that both have and nobody wants.
void drop_single(Operand& a, Operand& b, const Labels& wanted) {
  const Labels single = those(a.labels, [&](int64_t label) {
    return has(b.labels, label) && !has(wanted, label) && size_at(a, label) == 1;
  });
  a = without(a, single, How::kSqueeze);
  b = without(b, single, How::kSqueeze);
}

// Two operands as one batched matrix product, or as one product of elements. Where there is nothing
// to sum, autocast leaves them in the precision they have.
Operand contracted(Operand a, Operand b, const Labels& wanted) {
  prepare(a, b, wanted);
  drop_single(a, b, wanted);
  const auto in_b = [&](int64_t label) { return has(b.labels, label); };
  const Labels both = those(a.labels, in_b);
  const Labels batch = those(both, [&](int64_t label) { return has(wanted, label); });
  const Labels inner = those(both, [&](int64_t label) { return !has(wanted, label); });
  const Labels rows = those(a.labels, [&](int64_t label) { return !in_b(label); });
  const Labels columns = those(b.labels, [&](int64_t label) { return !has(a.labels, label); });
  // Integers that were summed before are int64 by now.
  const DType dtype = promote(a.value.dtype(), b.value.dtype());
  const bool whole = !is_floating(dtype) && !is_complex(dtype);
  const auto operand = [&](const Tensor& x) { return whole ? as_dtype(x, dtype) : x; };
  const Tensor left = ops::permute(operand(a.value), dims_of(a, batch, rows, inner));
  const Tensor right = ops::permute(operand(b.value), dims_of(b, batch, inner, columns));
  Labels labels = batch;
  Dims sizes = sizes_of(a, batch);
  const int64_t groups = product(sizes), summed = product(sizes_of(a, inner));
  const Dims row_sizes = sizes_of(a, rows), column_sizes = sizes_of(b, columns);
  for (const int64_t label : rows) labels.push_back(label);
  for (const int64_t label : columns) labels.push_back(label);
  const bool outer = inner.empty() && !rows.empty() && !columns.empty();
  if (inner.empty() && (!outer || a.value.dtype() != b.value.dtype())) {
    Dims left_shape = sizes, right_shape = sizes;
    for (const int64_t size : row_sizes) left_shape.push_back(size), right_shape.push_back(1);
    for (const int64_t size : column_sizes) left_shape.push_back(1), right_shape.push_back(size);
    return {ops::mul(ops::reshape(left, left_shape), ops::reshape(right, right_shape)), labels};
  }
  for (const int64_t size : row_sizes) sizes.push_back(size);
  for (const int64_t size : column_sizes) sizes.push_back(size);
  const int64_t left_shape[] = {groups, product(row_sizes), summed};
  const int64_t right_shape[] = {groups, summed, product(column_sizes)};
  const Tensor x = ops::reshape(left, left_shape), y = ops::reshape(right, right_shape);
  const Tensor made = outer ? ops::_bmm(x, y) : ops::bmm(x, y);
  return {ops::reshape(made, sizes), labels};
}

// The next pair of operands: as `path` says, or from the left.
std::pair<size_t, size_t> next_pair(std::optional<IntList> path, size_t step, size_t left,
                                    bool is_first) {
  if (!path) return is_first ? std::pair<size_t, size_t>(0, 1) : std::pair(left - 1, size_t{0});
  const auto count = static_cast<int64_t>(left);
  const int64_t a = (*path)[2 * step], b = (*path)[2 * step + 1];
  WEFT_CHECK(a != b && a >= 0 && b >= 0 && a < count && b < count,
             "einsum: expected a path of positions among ", left, " operands, got ", a, " and ", b);
  return {static_cast<size_t>(a), static_cast<size_t>(b)};
}

std::vector<Operand> parts_of(std::string_view left, const TensorList& tensors) {
  const std::vector<std::string_view> terms = split(left, ',');
  WEFT_CHECK(terms.size() == tensors.size(), "einsum: expected ", terms.size(), " operands, got ",
             tensors.size());
  std::vector<Operand> parts;
  for (size_t i = 0; i < terms.size(); ++i) {
    parts.push_back({tensors[i], labels_of(terms[i], tensors[i].dim())});
  }
  return parts;
}

}  // namespace

Tensor einsum(const std::string& equation, const TensorList& tensors, std::optional<IntList> path) {
  std::string text = equation;
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::string_view all = text;
  const size_t arrow = all.find("->");
  std::vector<Operand> parts = parts_of(all.substr(0, arrow), tensors);
  const Labels result = arrow == std::string_view::npos
                            ? implied_result(parts)
                            : given_result(parts, all.substr(arrow + 2));
  WEFT_CHECK(!path || path->size() == 2 * (parts.size() - 1), "einsum: expected a path of ",
             2 * (parts.size() - 1), " places, got ", path ? path->size() : 0);
  for (Operand& part : parts) part = diagonals(part);
  for (size_t step = 0; parts.size() > 1; ++step) {
    const auto [i, j] = next_pair(path, step, parts.size(), step == 0);
    Operand a = parts[i], b = parts[j];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(std::max(i, j)));
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(std::min(i, j)));
    Labels wanted = result;
    for (const Operand& part : parts) {
      for (const int64_t label : part.labels) wanted.push_back(label);
    }
    parts.push_back(contracted(std::move(a), std::move(b), wanted));
  }
  const Labels extra = those(parts[0].labels, [&](int64_t label) { return !has(result, label); });
  const Operand last = without(parts[0], extra, How::kSum);
  const Tensor made = ops::permute(last.value, dims_of(last, result, {}, {}));
  // The schema says that the result is no view, so that one of an operand is copied.
  const bool is_view = std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& tensor) {
    return tensor.storage() == made.storage();
  });
  return is_view ? ops::clone(made) : made;
}

}  // namespace weft::native
