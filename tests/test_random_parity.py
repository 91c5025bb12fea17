"""After the same seed: PyTorch's numbers, bit for bit, and the generator left at the same place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="PyTorch is the reference of these tests")
pytestmark = pytest.mark.parity

Draw = Callable[[Any], Any]  # from a library to a tensor
SEEDS = (0, 42, 2**40 + 7)
FLOATS = ("float32", "float64", "float16", "bfloat16")
SIZES = (0, 1, 7, 15, 16, 17, 32, 100, 5000)  # 16 and more are drawn in blocks
CASES: dict[str, Draw] = {}


def array(tensor: Any) -> np.ndarray:
    tensor = tensor.detach()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def draws(lib: Any, seed: int, draw: Draw) -> tuple[Any, np.ndarray]:
    """The draw, and what the default generator gives next."""
    lib.manual_seed(seed)
    result = draw(lib)
    after = [array(lib.rand(3)), array(lib.rand(2, dtype=lib.float64)), array(lib.randn(2))]
    return result, np.concatenate(after)


def add(name: str, draw: Draw) -> None:
    assert name not in CASES
    CASES[name] = draw


def dtype_of(lib: Any, name: str) -> Any:
    return getattr(lib, name)


def add_floats(dtype: str, n: int) -> None:
    def zeros(lib: Any, *shape: int) -> Any:
        return lib.zeros(shape or n, dtype=dtype_of(lib, dtype))

    key = f"{dtype}-{n}"
    add(f"rand-{key}", lambda lib: lib.rand(n, dtype=dtype_of(lib, dtype)))
    add(f"randn-{key}", lambda lib: lib.randn(n, dtype=dtype_of(lib, dtype)))
    add(f"uniform_-{key}", lambda lib: zeros(lib).uniform_(-0.3, 1.4))
    add(f"normal_-{key}", lambda lib: zeros(lib).normal_(-0.3, 1.7))
    add(f"exponential_-{key}", lambda lib: zeros(lib).exponential_(1.7))
    add(f"bernoulli_-{key}", lambda lib: zeros(lib).bernoulli_(0.3))
    add(f"bernoulli-{key}", lambda lib: lib.bernoulli(zeros(lib).fill_(0.3)))
    add(f"poisson-{key}", lambda lib: lib.poisson(lib.arange(n).to(dtype_of(lib, dtype)) / 9))
    add(f"poisson-turned-{key}", lambda lib: lib.poisson(zeros(lib, n, 3).t() + 20))
    add(f"bernoulli.p-{key}", lambda lib: lib.bernoulli(zeros(lib), 0.3))
    add(f"dropout-{key}", lambda lib: lib.nn.functional.dropout(zeros(lib) + 1, 0.3))
    add(f"random_-{key}", lambda lib: zeros(lib).random_())
    add(f"random_.to-{key}", lambda lib: zeros(lib).random_(100))
    add(f"random_.from-{key}", lambda lib: zeros(lib).random_(-5, 100))
    add(f"normal_-step-{key}", lambda lib: zeros(lib, n, 2)[:, 0].normal_(-0.3, 1.7))
    add(f"normal_-turned-{key}", lambda lib: zeros(lib, n, 3).t().normal_())
    add(f"uniform_-step-{key}", lambda lib: zeros(lib, n, 3)[:, ::2].uniform_(-1, 3))
    add(f"uniform_-turned-{key}", lambda lib: zeros(lib, n, 3).t().uniform_())
    add(f"bernoulli_-turned-{key}", lambda lib: zeros(lib, n, 3).t().bernoulli_(0.3))
    add(f"dropout-turned-{key}", lambda lib: lib.dropout(zeros(lib, n, 3).t() + 1, 0.3, True))


for dtype in FLOATS:
    for n in SIZES:
        add_floats(dtype, n)

#: concentrations on both sides of 1; counts and chances of each way to draw, and of none
CONCENTRATIONS = [[0.0, 0.03, 0.5, 0.98], [1.0, 1.5, 8.0, 700.0]]
COUNTS, CHANCES = [[0.0], [3.0], [40.0], [1000.0]], [-0.1, 0.0, 0.02, 0.3, 0.5, 0.7, 0.95, 1.0, 1.5]


def add_variates(dtype: str) -> None:
    def numbers(lib: Any, values: list[Any]) -> Any:
        return lib.tensor(values, dtype=dtype_of(lib, dtype)).repeat(20, 1, 1)

    add(f"gamma-{dtype}", lambda lib: lib._standard_gamma(numbers(lib, CONCENTRATIONS)))
    add(f"gamma-turned-{dtype}", lambda lib: lib._standard_gamma(numbers(lib, CONCENTRATIONS).mT))
    add(f"dirichlet-{dtype}", lambda lib: lib._sample_dirichlet(numbers(lib, CONCENTRATIONS)))
    add(
        f"binomial-{dtype}",
        lambda lib: lib.binomial(
            *lib.broadcast_tensors(numbers(lib, COUNTS), numbers(lib, [CHANCES]))
        ),
    )


for dtype in ("float32", "float64"):
    add_variates(dtype)

for bits in (1, 3, 20, 27, 28, 31, 32, 40, 62):
    add(f"randint-2^{bits}", lambda lib, bits=bits: lib.randint(2**bits, (100,)))
    add(f"randint-around-2^{bits}", lambda lib, bits=bits: lib.randint(-(2**bits), 2**bits, (99,)))
for dtype in ("int64", "int32", "int16", "int8", "uint8", "bool"):
    add(
        f"randint-{dtype}",
        lambda lib, d=dtype: lib.randint(0, 2, (100,), dtype=dtype_of(lib, d)),
    )
    add(f"random_-{dtype}", lambda lib, d=dtype: lib.zeros(99, dtype=dtype_of(lib, d)).random_())
    add(
        f"bernoulli_-{dtype}",
        lambda lib, d=dtype: lib.zeros(99, dtype=dtype_of(lib, d)).bernoulli_(0.4),
    )
for dtype in ("int64", "float32"):
    add(
        f"random_-from-3-{dtype}",
        lambda lib, d=dtype: lib.zeros(99, dtype=dtype_of(lib, d)).random_(3, None),
    )

for n in (0, 1, 2, 10, 1000, 2**15 - 1, 2**15, 2**15 + 1, 100_000):
    add(f"randperm-{n}", lambda lib, n=n: lib.randperm(n))
for dtype in ("int32", "int16", "float32", "float64"):
    add(f"randperm-{dtype}", lambda lib, d=dtype: lib.randperm(100, dtype=dtype_of(lib, d)))

for dtype in ("float32", "float64"):
    for count, again in ((1, False), (1, True), (5, False), (5, True)):
        for shape in ((10,), (4, 10)):
            add(
                f"multinomial-{dtype}-{count}-{again}-{len(shape)}",
                lambda lib, d=dtype, count=count, again=again, shape=shape: lib.multinomial(
                    lib.arange(int(np.prod(shape))).to(dtype_of(lib, d)).add(1).reshape(shape),
                    count,
                    again,
                ),
            )

for dtype in ("complex64", "complex128"):
    for n in (3, 8, 20):
        add(f"rand-{dtype}-{n}", lambda lib, d=dtype, n=n: lib.rand(n, dtype=dtype_of(lib, d)))
        add(f"randn-{dtype}-{n}", lambda lib, d=dtype, n=n: lib.randn(n, dtype=dtype_of(lib, d)))

add("rand_like", lambda lib: lib.rand_like(lib.zeros(5, 7)))
add("randn_like", lambda lib: lib.randn_like(lib.zeros(5, 7)))
add("randint_like", lambda lib: lib.randint_like(lib.zeros(5, 7), 3, 10))
add("bernoulli_-double-p", lambda lib: lib.zeros(50).bernoulli_(lib.full((50,), 0.3).double()))
add("normal-numbers", lambda lib: lib.normal(2.0, 3.0, (20,)))
add("normal-means", lambda lib: lib.normal(lib.arange(20.0), 2.0))
add("normal-deviations", lambda lib: lib.normal(2.0, lib.arange(20.0)))
add("normal-both", lambda lib: lib.normal(lib.arange(5.0), lib.arange(1.0, 21.0).reshape(4, 5)))
add("odd-then-even", lambda lib: (lib.randn(3), lib.randn(4), lib.randn(20), lib.randn(5))[3])

for fill in (
    "uniform_",
    "normal_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "trunc_normal_",
):
    for shape in ((3, 4), (16, 8), (8, 3, 3, 3)):
        for dtype in ("float32", "float64"):
            add(
                f"init.{fill}-{dtype}-{len(shape)}-{shape[0]}",
                lambda lib, f=fill, s=shape, d=dtype: getattr(lib.nn.init, f)(
                    lib.empty(s, dtype=dtype_of(lib, d))
                ),
            )
for fill in ("kaiming_uniform_", "kaiming_normal_"):
    for mode in ("fan_in", "fan_out"):
        for name, a in (("relu", 0), ("leaky_relu", 0.3), ("tanh", 0), ("linear", 0), ("selu", 0)):
            add(
                f"init.{fill}-{mode}-{name}",
                lambda lib, f=fill, a=a, m=mode, n=name: getattr(lib.nn.init, f)(
                    lib.empty(8, 3, 5), a=a, mode=m, nonlinearity=n
                ),
            )
for mean, std, a, b in ((0.0, 1.0, 1.0, 3.0), (0.5, 0.02, -2.0, 2.0), (0.0, 1.0, -0.2, 0.1)):
    add(
        f"init.trunc_normal_-{a}-{b}",
        lambda lib, m=mean, s=std, a=a, b=b: lib.nn.init.trunc_normal_(lib.empty(500), m, s, a, b),
    )
add("init.sparse_", lambda lib: lib.nn.init.sparse_(lib.empty(10, 5), 0.3))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_same_bits(name: str, seed: int) -> None:
    (ours, ours_next), (theirs, theirs_next) = (draws(lib, seed, CASES[name]) for lib in LIBRARIES)
    assert str(ours.dtype) == str(theirs.dtype)
    np.testing.assert_array_equal(array(ours), array(theirs))
    np.testing.assert_array_equal(ours_next, theirs_next)


LIBRARIES = (weft, torch)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float64", 2e-14)])
@pytest.mark.parametrize("shape", [(3, 4), (16, 8), (8, 3, 3, 3), (30, 30)])
def test_orthogonal_to_rounding(shape: tuple[int, ...], dtype: str, tolerance: float) -> None:
    """Another algorithm gives the same Q: PyTorch's is LAPACK's Householder reflections."""

    def draw(lib: Any) -> Any:
        return lib.nn.init.orthogonal_(lib.empty(shape, dtype=dtype_of(lib, dtype)), 1.3)

    (ours, ours_next), (theirs, theirs_next) = (draws(lib, 0, draw) for lib in LIBRARIES)
    np.testing.assert_allclose(array(ours), array(theirs), rtol=0, atol=tolerance)
    np.testing.assert_array_equal(ours_next, theirs_next)


LAYERS: dict[str, Draw] = {
    "Linear": lambda nn: nn.Linear(7, 5),
    "Conv1d": lambda nn: nn.Conv1d(4, 6, 3),
    "Conv2d": lambda nn: nn.Conv2d(4, 6, 3, groups=2),
    "ConvTranspose2d": lambda nn: nn.ConvTranspose2d(4, 6, 3, groups=2),
    "Embedding": lambda nn: nn.Embedding(10, 6, padding_idx=2),
    "LSTM": lambda nn: nn.LSTM(5, 6, 2, bidirectional=True, proj_size=3),
    "GRU": lambda nn: nn.GRU(5, 6, bias=False),
    "RNNCell": lambda nn: nn.RNNCell(5, 6),
    "MultiheadAttention": lambda nn: nn.MultiheadAttention(8, 2),
    "MultiheadAttention-kdim": lambda nn: nn.MultiheadAttention(8, 2, kdim=5, vdim=6),
    "TransformerEncoderLayer": lambda nn: nn.TransformerEncoderLayer(8, 2, 16),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_start_from_the_same_parameters(name: str) -> None:
    states = []
    for lib in LIBRARIES:
        lib.manual_seed(9)
        states.append(LAYERS[name](lib.nn).state_dict())
    assert [*states[0]] == [*states[1]]
    for key, value in states[0].items():
        np.testing.assert_array_equal(array(value), array(states[1][key]), err_msg=key)


# Generators ---------------------------------------------------------------------------------------


def test_generator_objects_draw_their_own_stream() -> None:
    results = []
    for lib in LIBRARIES:
        lib.manual_seed(1)
        generator = lib.Generator().manual_seed(77)
        assert generator.initial_seed() == 77
        results.append(
            [
                array(value)
                for value in (
                    lib.rand(5, generator=generator),
                    lib.randn(5, generator=generator),
                    lib.randint(0, 9, (5,), generator=generator),
                    lib.randperm(9, generator=generator),
                    lib.empty(5).uniform_(2, 4, generator=generator),
                    lib.bernoulli(lib.full((9,), 0.5), generator=generator),
                    lib.multinomial(lib.ones(9), 4, generator=generator),
                    lib.rand(3),  # the default generator has not moved
                )
            ]
        )
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_new_generators_start_from_the_same_seed() -> None:
    assert weft.Generator().initial_seed() == torch.Generator().initial_seed()
    ours, theirs = (array(lib.rand(4, generator=lib.Generator())) for lib in LIBRARIES)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("drawn", [0, 1, 3, 311, 624, 1000])
def test_states_travel_between_the_libraries(drawn: int) -> None:
    """The state is PyTorch's 5056 bytes, the cached normal included."""
    states = []
    for lib in LIBRARIES:
        lib.manual_seed(5)
        lib.rand(drawn)
        lib.randn(3)
        states.append(lib.get_rng_state())
    assert states[0].dtype == weft.uint8
    np.testing.assert_array_equal(array(states[0]), array(states[1]))
    weft.manual_seed(0)
    weft.set_rng_state(weft.tensor(states[1].tolist(), dtype=weft.uint8))
    torch.set_rng_state(torch.tensor(states[0].tolist(), dtype=torch.uint8))
    np.testing.assert_array_equal(array(weft.randn(7)), array(torch.randn(7)))
    np.testing.assert_array_equal(array(weft.rand(700)), array(torch.rand(700)))


def test_generator_states() -> None:
    generators = [lib.Generator().manual_seed(3) for lib in LIBRARIES]
    states = [generator.get_state() for generator in generators]
    first = [array(lib.randn(3, generator=g)) for lib, g in zip(LIBRARIES, generators)]
    for generator, state in zip(generators, states):
        generator.set_state(state)
    again = [array(lib.randn(3, generator=g)) for lib, g in zip(LIBRARIES, generators)]
    for values in (first[1], *again):
        np.testing.assert_array_equal(values, first[0])


def test_fork_rng() -> None:
    results = []
    for lib in LIBRARIES:
        lib.manual_seed(8)
        with lib.random.fork_rng():
            inside = lib.rand(3)
            lib.manual_seed(1)
        with lib.random.fork_rng(enabled=False):
            lib.rand(1)
        results.append([array(inside), array(lib.rand(3))])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_seeds() -> None:
    for lib in LIBRARIES:
        assert lib.manual_seed(-1) is lib.default_generator
        assert lib.initial_seed() == 2**64 - 1
        assert lib.random.initial_seed() == 2**64 - 1
    np.testing.assert_array_equal(array(weft.rand(3)), array(torch.rand(3)))
    assert weft.seed() == weft.initial_seed()


def test_data_loader_shuffles_alike() -> None:
    orders = []
    for lib in LIBRARIES:
        lib.manual_seed(6)
        data = lib.utils.data.TensorDataset(lib.arange(20))
        loader = lib.utils.data.DataLoader(data, batch_size=7, shuffle=True)
        first, second = lib.utils.data.random_split(data, [15, 5])
        orders.append(
            [
                [batch.tolist() for _ in range(2) for (batch,) in loader],
                [int(x) for (x,) in first] + [int(x) for (x,) in second],
                array(lib.rand(2)).tolist(),
            ]
        )
    assert orders[0] == orders[1]


BATCHES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "normal": lambda lib, x, y: lib.normal(x, y),
    "normal of deviations": lambda lib, x, y: lib.normal(0.5, y),
    "normal of rows": lambda lib, x, y: lib.normal(x, y[0]),
    "binomial": lambda lib, x, y: lib.binomial((9 * x).floor() + 0 * y, y),
    **{
        name: lambda lib, x, y, name=name: getattr(lib.nn.functional, name)(x, 0.5, True)
        for name in ("dropout", "dropout1d", "alpha_dropout", "feature_alpha_dropout")
    },
}


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (None, None)])
@pytest.mark.parametrize("name", BATCHES)
def test_samples_of_a_batch_draw_as_the_whole_batch(name: str, in_dims: Any) -> None:
    results = []
    for lib in LIBRARIES:
        values = lib.linspace(0.1, 0.9, 81).reshape(3, 3, 3, 3)
        x, y = (values if dim is not None else values[1] for dim in in_dims)
        lib.manual_seed(4)
        mapped = lib.vmap(
            lambda x, y, mark, lib=lib: BATCHES[name](lib, x, y) + mark,
            (*in_dims, 0),
            randomness="different",
        )
        results.append(array(mapped(x, y, lib.zeros(3))))
    np.testing.assert_allclose(*results, rtol=1e-6, atol=1e-6)
