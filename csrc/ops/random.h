// The generator a random operator draws from.
#pragma once

#include <optional>

#include "core/generator.h"
#include "core/tensor.h"

namespace weft::native {

// The one given, or the default one when none is.
const Ref<Generator>& generator_or_default(const Ref<Generator>& generator);

// One normal number of mean 0 and variance 1: of a Box-Muller pair, whose second is kept.
double draw_normal(Generator& generator);

// The fills (random.cpp), as native.h declares those that are rows of the table.
Tensor uniform_(const Tensor& self, double from, double to, const Ref<Generator>& generator);
Tensor normal_(const Tensor& self, double mean, double std, const Ref<Generator>& generator);
Tensor exponential_(const Tensor& self, double lambd, const Ref<Generator>& generator);
Tensor bernoulli_(const Tensor& self, double p, const Ref<Generator>& generator);
Tensor bernoulli_(const Tensor& self, const Tensor& p, const Ref<Generator>& generator);
Tensor random_(const Tensor& self, int64_t from, std::optional<int64_t> to,
               const Ref<Generator>& generator);
Tensor random_(const Tensor& self, int64_t to, const Ref<Generator>& generator);
Tensor random_(const Tensor& self, const Ref<Generator>& generator);

// What dropout multiplies with: 0 with probability p, else 1 / (1 - p). Raises for integer inputs.
Tensor dropout_mask(const Tensor& input, double p);

}  // namespace weft::native
