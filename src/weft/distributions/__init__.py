"""Probability distributions: samples, log-probabilities with gradients, entropies, divergences.

>>> from weft.distributions import Normal, kl_divergence
>>> Normal(0.0, 2.0).log_prob(weft.tensor(0.0)), kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
(tensor(-1.6121), tensor(0.5000))
"""

from weft.distributions import constraints, utils
from weft.distributions.continuous import Exponential, Laplace, LogNormal, Normal, Uniform
from weft.distributions.discrete import Bernoulli, Categorical, OneHotCategorical, Poisson
from weft.distributions.distribution import Distribution
from weft.distributions.independent import Independent
from weft.distributions.kl import kl_divergence, register_kl

__all__ = [
    "Bernoulli",
    "Categorical",
    "Distribution",
    "Exponential",
    "Independent",
    "Laplace",
    "LogNormal",
    "Normal",
    "OneHotCategorical",
    "Poisson",
    "Uniform",
    "constraints",
    "kl_divergence",
    "register_kl",
    "utils",
]
