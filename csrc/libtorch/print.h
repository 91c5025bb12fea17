// Tensors as text, in the manner of libtorch: rows of matrices, then the type and the sizes.
#pragma once

#include <cmath>
#include <iomanip>

#include "factories.h"

namespace at {
inline namespace over_weft {
namespace detail {

// How numbers of a tensor are written: `digits` behind the point, or an exponent, in `width`.
struct NumberFormat {
  bool is_integer = true, is_scientific = false;
  int width = 1;

  explicit NumberFormat(const std::vector<double>& numbers) {
    double largest = 0, smallest = 0;
    bool found = false;
    for (const double number : numbers) {
      if (!std::isfinite(number)) continue;
      const double size = std::abs(number);
      is_integer = is_integer && number == std::ceil(number);
      largest = found ? std::max(largest, size) : size;
      smallest = found ? std::min(smallest, size) : size;
      found = true;
    }
    const int high = exponent_of(largest), low = exponent_of(smallest);
    if (is_integer) {
      is_scientific = high > 15;
      width = is_scientific ? 11 : high + 1;
    } else {
      is_scientific = high - low > 4 || high > 5 || high < 0;
      width = is_scientific ? 11 : high + 6;
    }
  }
  void write(std::ostream& out, double number) const {
    std::ostringstream text;
    if (is_scientific) {
      text << std::scientific << std::setprecision(4);
    } else {
      text << std::fixed << std::setprecision(is_integer ? 0 : 4);
    }
    text << number;
    out << std::setw(width) << text.str();
  }

 private:
  static int exponent_of(double number) {
    return number == 0 ? 1 : static_cast<int>(std::floor(std::log10(number))) + 1;
  }
};

inline std::vector<double> numbers_of(const Tensor& tensor) {
  const Tensor flat = tensor.detach().to(kDouble).contiguous();
  const double* first = static_cast<const double*>(flat.data_ptr());
  return {first, first + flat.numel()};
}

inline void print_matrix(std::ostream& out, const Tensor& matrix, int64_t line_width) {
  const std::vector<double> numbers = numbers_of(matrix);
  const NumberFormat format(numbers);
  const auto rows = static_cast<size_t>(matrix.size(0)),
             columns = static_cast<size_t>(matrix.size(1));
  const auto most = std::max<int64_t>(1, (line_width - 1) / (format.width + 1));
  for (size_t from = 0; from < columns; from += static_cast<size_t>(most)) {
    const size_t to = std::min(columns, from + static_cast<size_t>(most));
    const bool is_split = static_cast<size_t>(most) < columns;
    if (is_split) {
      out << (from > 0 ? "\n" : "") << "Columns " << from + 1 << " to " << to;
    }
    for (size_t row = 0; row < rows; ++row) {
      if (row > 0 || is_split) out << '\n';
      for (size_t column = from; column < to; ++column) {
        out << ' ';
        format.write(out, numbers[row * columns + column]);
      }
    }
  }
  out << '\n';
}

inline void print_matrices(std::ostream& out, const Tensor& tensor, int64_t line_width) {
  std::vector<int64_t> place(static_cast<size_t>(tensor.dim() - 2));
  const IntArrayRef sizes = tensor.sizes();
  bool more = true;
  for (bool is_first = true; more; is_first = false) {
    if (!is_first) out << '\n';
    Tensor matrix = tensor;
    out << '(';
    for (const int64_t index : place) {
      matrix = matrix.select(0, index);
      out << index + 1 << ',';
    }
    out << ".,.) = \n";
    print_matrix(out, matrix, line_width);
    more = false;
    for (size_t i = 0; i < place.size() && !more; ++i) {
      place[i] = (place[i] + 1) % sizes[i];
      more = place[i] != 0;
    }
  }
}

}  // namespace detail

inline std::ostream& print(std::ostream& out, const Tensor& tensor, int64_t line_width = 80) {
  if (!tensor.defined()) return out << "[ Tensor (undefined) ]";
  const std::string type = tensor.toString();
  if (tensor.is_complex()) {
    return print(out, view_as_real(tensor), line_width) << " (of " << type << ')';
  }
  if (tensor.numel() == 0 || tensor.dim() == 0) {
    if (tensor.numel() > 0) {
      detail::NumberFormat(detail::numbers_of(tensor)).write(out, tensor.item<double>());
      out << '\n';
    }
    out << "[ " << type << '{';
    if (tensor.dim() > 0) {
      for (int64_t i = 0; i < tensor.dim(); ++i) out << (i > 0 ? "," : "") << tensor.size(i);
    }
    return out << "} ]";
  }
  if (tensor.dim() == 1) {
    const std::vector<double> numbers = detail::numbers_of(tensor);
    const detail::NumberFormat format(numbers);
    for (const double number : numbers) {
      out << ' ';
      format.write(out, number);
      out << '\n';
    }
  } else if (tensor.dim() == 2) {
    detail::print_matrix(out, tensor, line_width);
  } else {
    detail::print_matrices(out, tensor, line_width);
  }
  out << "[ " << type << '{';
  for (int64_t i = 0; i < tensor.dim(); ++i) out << (i > 0 ? "," : "") << tensor.size(i);
  return out << "} ]";
}
inline std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return print(out, tensor);
}
inline void print(const Tensor& tensor, int64_t line_width = 80) {
  print(std::cout, tensor, line_width);
}
inline void Tensor::print() const { std::cout << '[' << toString() << ' ' << sizes() << "]\n"; }

}  // namespace over_weft
}  // namespace at
