// Tensors as text, in the manner of libtorch: rows of matrices, then the type and the sizes.
#pragma once

#include <cmath>
#include <iomanip>

#include "factories.h"

namespace at {
inline namespace over_weft {
namespace detail {

// The fewest digits that read as the number again; an exponent from 1e16 on, and below 1e-4.
inline std::string shortest(double number) {
  std::ostringstream text;
  int digits = 1;
  for (; digits <= 17; ++digits) {
    text.str("");
    text << std::setprecision(digits) << number;
    if (std::strtod(text.str().c_str(), nullptr) == number) break;
  }
  if (!(std::abs(number) >= 1e-4 && std::abs(number) < 1e16)) return text.str();
  const int before = static_cast<int>(std::floor(std::log10(std::abs(number)))) + 1;
  text.str("");
  text << std::fixed << std::setprecision(std::max(0, digits - before)) << number;
  return text.str();
}

// How the numbers of a tensor are written: whole ones as they are, others with four digits behind
// the point, of what is left when a common power of ten is taken out, or with exponents.
struct NumberFormat {
  bool is_whole = true, is_scientific = false;
  int width = 1;
  double scale = 1;

  explicit NumberFormat(const std::vector<double>& numbers) {
    double largest = 0, smallest = 0;
    bool found = false;
    for (const double number : numbers) {
      if (!std::isfinite(number)) continue;
      const double size = std::abs(number);
      is_whole = is_whole && number == std::ceil(number);
      largest = found ? std::max(largest, size) : size;
      smallest = found ? std::min(smallest, size) : size;
      found = true;
    }
    const int high = digits_of(largest), low = digits_of(smallest);
    is_scientific = is_whole ? high > 9 : high - low > 4;
    if (is_scientific) {
      width = std::abs(high) > 99 || std::abs(low) > 99 ? 12 : 11;
    } else if (is_whole) {
      width = high + 1;
    } else if (high > 5 || high < 0) {
      scale = std::pow(10.0, high - 1);
      width = 7;
    } else {
      width = high == 0 ? 7 : high + 6;
    }
  }
  void write(std::ostream& out, double number) const {
    std::ostringstream text;
    if (is_scientific) {
      text << std::scientific << std::setprecision(4);
    } else if (!is_whole) {
      text << std::fixed << std::setprecision(4);
    }
    text << number / scale;
    out << std::setw(width) << text.str();
  }
  void write_scale(std::ostream& out, const std::string& margin) const {
    if (scale != 1) out << shortest(scale) << " *\n" << margin;
  }

 private:
  // Before the point; 0 and less for those that begin behind it.
  static int digits_of(double number) {
    return number == 0 ? 1 : static_cast<int>(std::floor(std::log10(number))) + 1;
  }
};

inline std::vector<double> numbers_of(const Tensor& tensor) {
  const Tensor real = tensor.is_complex() ? at::real(tensor) : tensor;  // all that is written
  const Tensor flat = real.detach().to(kDouble).contiguous();
  const double* first = static_cast<const double*>(flat.data_ptr());
  return {first, first + flat.numel()};
}

inline void print_matrix(std::ostream& out, const Tensor& matrix, int64_t line_width, int indent) {
  const std::vector<double> numbers = numbers_of(matrix);
  const NumberFormat format(numbers);
  const std::string margin(static_cast<size_t>(indent), ' ');
  const int64_t rows = matrix.size(0), columns = matrix.size(1);
  const int64_t most = std::max<int64_t>(1, (line_width - indent) / (format.width + 1));
  for (int64_t from = 0; from < columns; from += most) {
    const int64_t to = std::min(columns, from + most);
    if (most < columns) {
      out << (from > 0 ? "\n" : "") << "Columns " << from + 1 << " to " << to << margin;
    }
    format.write_scale(out, margin);
    for (int64_t row = 0; row < rows; ++row) {
      if (row > 0) out << margin << (format.scale != 1 ? " " : "");
      for (int64_t column = from; column < to; ++column) {
        out << (column > from ? " " : "");
        format.write(out, numbers[static_cast<size_t>(row * columns + column)]);
      }
      out << '\n';
    }
  }
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
    print_matrix(out, matrix, line_width, 1);
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
  if (tensor.dim() == 0) {
    out << detail::shortest(detail::numbers_of(tensor)[0]) << '\n';
  } else if (tensor.dim() == 1) {
    const std::vector<double> numbers = detail::numbers_of(tensor);
    const detail::NumberFormat format(numbers);
    format.write_scale(out, "");
    for (const double number : numbers) {
      format.write(out, number);
      out << '\n';
    }
  } else if (tensor.numel() > 0) {
    if (tensor.dim() == 2) {
      detail::print_matrix(out, tensor, line_width, 0);
    } else {
      detail::print_matrices(out, tensor, line_width);
    }
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
inline void Tensor::print() const { std::cerr << '[' << toString() << ' ' << sizes() << "]\n"; }

}  // namespace over_weft
}  // namespace at
