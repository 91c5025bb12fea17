"""Packed sequences in scripted programs and in traces: results and gradients are those of eager weft,
and PyTorch's where it takes the same source."""

from __future__ import annotations

import linecache
import types
import typing
import warnings
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, jit, nn
from weft.nn.utils import rnn
from weft.nn.utils.rnn import PackedSequence

LENGTHS = [2, 5, 1, 3]
OTHER_LENGTHS = [4, 1, 7, 2, 7, 3]

# name: source of a function, and whether its input is sorted
FUNCTIONS = {
    "pack": ("def f(x, n):\n    return pack_padded_sequence(x, n, enforce_sorted=False)", False),
    "pack sorted": ("def f(x, n):\n    return pack_padded_sequence(x, n)", True),
    "pack batch first": (
        "def f(x, n):\n    return pack_padded_sequence(x.transpose(0, 1), n, True, False)",
        False,
    ),
    "unpack": (
        "def f(x, n):\n"
        "    return pad_packed_sequence(pack_padded_sequence(x, n, enforce_sorted=False))",
        False,
    ),
    "unpack sorted": (
        "def f(x, n):\n    return pad_packed_sequence(pack_padded_sequence(x, n), True, -1.5)",
        True,
    ),
    "total length": (
        "def f(x, n):\n"
        "    packed = pack_padded_sequence(x, n, enforce_sorted=False)\n"
        "    return pad_packed_sequence(packed, total_length=x.size(0) + 2, padding_value=2.0)",
        False,
    ),
    "fields": (
        "def f(x, n):\n"
        "    packed = pack_padded_sequence(x, n, enforce_sorted=False)\n"
        "    order, back = packed.sorted_indices, packed.unsorted_indices\n"
        "    assert order is not None and back is not None\n"
        "    return packed.data * 2, packed.batch_sizes + 1, order, back",
        False,
    ),
    "construct": (
        "def f(x, n):\n"
        "    p = pack_padded_sequence(x, n, enforce_sorted=False)\n"
        "    made = PackedSequence(p.data * 2, p.batch_sizes, p.sorted_indices, p.unsorted_indices)\n"
        "    return pad_packed_sequence(made)",
        False,
    ),
    "pack a list": (
        "def f(x, n):\n    return pack_sequence([x[:2, 0], x[:4, 1], x[1:, 2]], False)",
        False,
    ),
}  # fmt: skip


class Embed(nn.Module):
    """From packed words to packed vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, packed: PackedSequence) -> PackedSequence:
        return PackedSequence(
            self.linear(packed.data),
            packed.batch_sizes,
            packed.sorted_indices,
            packed.unsorted_indices,
        )


class Tagger(nn.Module):
    def __init__(self, kind: str, enforce_sorted: bool = False, **options: Any) -> None:
        super().__init__()
        self.embed = Embed()
        self.layers = getattr(nn, kind)(3, 4, **options)
        self.enforce_sorted = enforce_sorted

    def forward(self, x: Tensor, lengths: Tensor):
        packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=self.enforce_sorted)
        output, state = self.layers(self.embed(packed))
        padded, counts = rnn.pad_packed_sequence(output)
        return padded, counts, state


class Starting(nn.Module):
    """With states that are given: of LSTM two, else one."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.layers = getattr(nn, kind)(3, 4, **options)

    def forward(self, x: Tensor, lengths: Tensor, first: Tensor):
        packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        output, state = self.layers(packed, first)
        return rnn.pad_packed_sequence(output)[0], state


class StartingLSTM(Starting):
    def forward(self, x: Tensor, lengths: Tensor, first: Tensor, second: Tensor):
        packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        output, state = self.layers(packed, (first, second))
        return rnn.pad_packed_sequence(output)[0], state


def batch(lengths: list[int], lib: Any = weft, features: int = 3) -> tuple[Any, Any]:
    x = np.random.default_rng(len(lengths)).standard_normal((max(lengths), len(lengths), features))
    return lib.tensor(x.astype(np.float32)), lib.tensor(lengths)


def flat(given: Any) -> list[Any]:
    if isinstance(given, (tuple, list)):
        return [part for item in given for part in flat(item)]
    return [given]


def assert_equal(got: Any, wanted: Any) -> None:
    mine, theirs = flat(got), flat(wanted)
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs):
        if other is None:
            assert one is None
            continue
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.detach().numpy(), other.detach().numpy())


def quiet_trace(*args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return jit.trace(*args, **kwargs)


def with_gradients(module: Any, run: Any, *given: Any) -> list[Any]:
    """The results of a module's form, and the gradients of parameters and inputs."""
    given = tuple(g.clone().requires_grad_(g.is_floating_point()) for g in given)
    module.zero_grad()
    weft.manual_seed(7)
    results = flat(run(*given))
    sum(r.square().sum() for r in results if r.is_floating_point()).backward()
    inputs = [g.grad for g in given if g.requires_grad]
    return [*results, *(p.grad.clone() for p in module.parameters()), *inputs]


def function_of(text: str, lib: Any) -> Any:
    """The function of a source over weft or PyTorch; both find the source."""
    filename = f"<packed: {hash(text)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    module = types.ModuleType("packed_source")
    vars(module).update(vars(lib.nn.utils.rnn), **{lib.__name__: lib})
    exec(compile(text, filename, "exec"), vars(module))
    return module.f


def lengths_of(is_sorted: bool) -> tuple[list[int], list[int]]:
    if is_sorted:
        return sorted(LENGTHS, reverse=True), sorted(OTHER_LENGTHS, reverse=True)
    return LENGTHS, OTHER_LENGTHS


# Functions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_scripted_functions(name: str) -> None:
    text, is_sorted = FUNCTIONS[name]
    eager = function_of(text, weft)
    scripted = jit.script(eager)
    for lengths in lengths_of(is_sorted):
        wanted = eager(*batch(lengths))
        for _ in range(3):  # unoptimised, optimised, as native code
            got = scripted(*batch(lengths))
            assert type(got) is type(wanted)
            assert_equal(got, wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traced_functions(name: str) -> None:
    text, is_sorted = FUNCTIONS[name]
    eager = function_of(text, weft)

    def tensors(x: Any, n: Any) -> Any:
        return tuple(part for part in eager(x, n) if part is not None)

    first, second = lengths_of(is_sorted)
    traced = quiet_trace(tensors, batch(first))
    for lengths in (first, second, [3, 3, 2, 1]):
        assert_equal(traced(*batch(lengths)), tensors(*batch(lengths)))


@pytest.mark.parity
@pytest.mark.parametrize("name", FUNCTIONS)
def test_scripted_functions_equal_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    text, is_sorted = FUNCTIONS[name]
    mine, theirs = jit.script(function_of(text, weft)), torch.jit.script(function_of(text, torch))
    for lengths in lengths_of(is_sorted):
        assert_equal(mine(*batch(lengths)), _as_weft(theirs(*batch(lengths, torch))))


def _as_weft(given: Any) -> list[Any]:
    return [None if t is None else weft.tensor(t.numpy()) for t in flat(given)]


def test_a_list_of_lengths() -> None:
    def f(x: Tensor, n: typing.List[int]) -> PackedSequence:  # noqa: UP006
        return rnn.pack_padded_sequence(x, n, enforce_sorted=False)

    x, _ = batch(LENGTHS)
    assert_equal(jit.script(f)(x, LENGTHS), f(x, LENGTHS))

    def fixed(x: Tensor) -> Any:
        return rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 1], batch_first=True))

    traced = quiet_trace(fixed, weft.randn(2, 4, 3))
    other = weft.randn(2, 3, 5)
    assert_equal(traced(other), fixed(other))


def test_unpacking() -> None:
    def unpack(packed: PackedSequence):
        return rnn.unpack_sequence(packed)

    def unpad(x: Tensor, lengths: Tensor):
        return rnn.unpad_sequence(x, lengths)

    packed = rnn.pack_padded_sequence(*batch(LENGTHS), enforce_sorted=False)
    assert_equal(jit.script(unpack)(packed), unpack(packed))
    assert_equal(jit.script(unpad)(*batch(LENGTHS)), unpad(*batch(LENGTHS)))
    traced = quiet_trace(lambda x, lengths: tuple(unpad(x, lengths)), batch(LENGTHS))
    others = batch([6, 0, 4, 2])  # a trace knows how many there are
    assert_equal(traced(*others), unpad(*others))


def test_refusals_are_those_of_eager_mode() -> None:
    def pack(x: Tensor, n: Tensor):
        return rnn.pack_padded_sequence(x, n)

    def pad(packed: PackedSequence, total: int):
        return rnn.pad_packed_sequence(packed, total_length=total)

    for run in (jit.script(pack), quiet_trace(lambda x, n: pack(x, n).data, batch([5, 3, 2, 1]))):
        for lengths, text in (
            (LENGTHS, "expected lengths longest first, got"),
            ([3, 0], "expected lengths of at least 1, got"),
        ):
            with pytest.raises(RuntimeError, match=f"pack_padded_sequence: {text}"):
                run(*batch(lengths))
    with pytest.raises(ValueError, match="expected total_length of at least 3, got 2"):
        jit.script(pad)(rnn.pack_padded_sequence(*batch([3, 1])), 2)


# The class ------------------------------------------------------------------------------------


def test_arguments_and_attributes() -> None:
    @jit.script
    def parts(packed: PackedSequence):
        data, sizes, _, back = packed
        assert isinstance(packed, PackedSequence)
        return data, sizes, packed.sorted_indices, back

    @jit.script
    def total(packs: list[PackedSequence], last: PackedSequence | None):
        found = weft.zeros(3)
        for packed in packs:
            found = found + packed.data.sum(0)
        return found if last is None else found + last.data[0]

    x, lengths = batch(LENGTHS)
    packs = [rnn.pack_padded_sequence(x, lengths, enforce_sorted=False),
             rnn.pack_padded_sequence(x, lengths.sort(descending=True)[0])]  # fmt: skip
    for packed in packs:
        assert_equal(parts(packed), packed)
    sums = packs[0].data.sum(0) + packs[1].data.sum(0)
    assert_equal(total(packs, None), sums)
    assert_equal(total(packs, packs[0]), sums + packs[0].data[0])


def test_the_constructor_does_what_its_new_does() -> None:
    def inverted(packed: PackedSequence):
        return PackedSequence(packed.data, packed.batch_sizes, packed.sorted_indices)

    def sorted_(data: Tensor, sizes: Tensor):
        return rnn.PackedSequence(batch_sizes=sizes, data=data)

    def without_sizes(data: Tensor):
        return PackedSequence(data)

    packed = rnn.pack_padded_sequence(*batch(LENGTHS), enforce_sorted=False)
    assert_equal(jit.script(inverted)(packed), packed)
    assert inverted(packed).unsorted_indices is not None
    got = jit.script(sorted_)(packed.data, packed.batch_sizes)
    assert_equal(got, (packed.data, packed.batch_sizes, None, None))
    with pytest.raises(ValueError, match="PackedSequence: expected batch_sizes, got None"):
        jit.script(without_sizes)(packed.data)


# Recurrent layers -----------------------------------------------------------------------------

LAYERS = [
    ("LSTM", {}),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "dropout": 0.3}),
    ("LSTM", {"proj_size": 2, "bidirectional": True, "batch_first": True}),
    ("LSTM", {"bias": False}),
    ("GRU", {"num_layers": 2, "dropout": 0.5}),
    ("GRU", {"bidirectional": True, "bias": False}),
    ("RNN", {"bidirectional": True}),
    ("RNN", {"nonlinearity": "relu", "num_layers": 2}),
]


@pytest.mark.parametrize(("kind", "options"), LAYERS)
def test_scripted_layers(kind: str, options: Any) -> None:
    module = Tagger(kind, **options)
    scripted = jit.script(module)
    for lengths in (LENGTHS, OTHER_LENGTHS, LENGTHS):
        wanted = with_gradients(module, module, *batch(lengths))
        assert_equal(with_gradients(module, scripted, *batch(lengths)), wanted)


@pytest.mark.parametrize(("kind", "options"), LAYERS)
def test_traced_layers(kind: str, options: Any) -> None:
    module = Tagger(kind, **options).eval()
    traced = quiet_trace(module, batch(LENGTHS))
    same_shape = [5, 5, 2, 4]
    for lengths in (LENGTHS, same_shape, OTHER_LENGTHS):
        wanted = with_gradients(module, module, *batch(lengths))
        assert_equal(with_gradients(module, traced, *batch(lengths)), wanted)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_sorted_sequences(kind: str) -> None:
    module = Tagger(kind, enforce_sorted=True)
    scripted, traced = jit.script(module), quiet_trace(module, batch([5, 3, 2, 1]))
    for lengths in ([5, 3, 2, 1], [7, 7, 4]):
        wanted = with_gradients(module, module, *batch(lengths))
        assert_equal(with_gradients(module, scripted, *batch(lengths)), wanted)
        assert_equal(with_gradients(module, traced, *batch(lengths)), wanted)


@pytest.mark.parametrize(("kind", "options"), LAYERS)
def test_states_that_are_given(kind: str, options: Any) -> None:
    module = (StartingLSTM if kind == "LSTM" else Starting)(kind, **options).eval()
    layers = module.layers
    rows = layers.num_layers * (2 if layers.bidirectional else 1)

    def given(lengths: list[int]) -> tuple[Any, ...]:
        sizes = [layers.proj_size or 4, 4][: 2 if kind == "LSTM" else 1]
        states = (weft.randn(rows, len(lengths), size) for size in sizes)
        return (*batch(lengths), *states)

    example = given(LENGTHS)
    scripted, traced = jit.script(module), quiet_trace(module, example)
    for inputs in (example, given(OTHER_LENGTHS)):
        wanted = with_gradients(module, module, *inputs)
        assert_equal(with_gradients(module, scripted, *inputs), wanted)
        assert_equal(with_gradients(module, traced, *inputs), wanted)
    wrong = (*batch([2, 1]), *example[2:])
    for run in (module, scripted):
        with pytest.raises(RuntimeError, match="expected a hidden state of shape"):
            run(*wrong)


def test_one_layer_takes_padded_and_packed_sequences() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.GRU(3, 4)

        def forward(self, x: Tensor, packed: PackedSequence):
            padded, first = self.layers(x)
            output, second = self.layers(packed, first)
            return padded, output, second

    module = Both()
    x, lengths = batch(LENGTHS)
    packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    got, wanted = jit.script(module)(x, packed), module(x, packed)
    assert_equal(got, wanted)
    assert isinstance(got[1], PackedSequence)
    wide = rnn.pack_padded_sequence(*batch(LENGTHS, features=2), enforce_sorted=False)
    with pytest.raises(RuntimeError, match="GRU: expected packed data of 2 dimensions, the last 3"):
        jit.script(module)(x, wide)


def test_traces_record_calls_of_programs_that_take_packed_sequences() -> None:
    module = Tagger("GRU")
    module.embed = jit.script(module.embed)
    traced = quiet_trace(module, batch(LENGTHS))
    assert_equal(traced(*batch(OTHER_LENGTHS)), module(*batch(OTHER_LENGTHS)))


def test_frozen_programs() -> None:
    module = Tagger("LSTM", bidirectional=True).eval()
    for program in (jit.script(module), quiet_trace(module, batch(LENGTHS))):
        assert_equal(jit.freeze(program)(*batch(OTHER_LENGTHS)), module(*batch(OTHER_LENGTHS)))


@pytest.mark.parity
@pytest.mark.parametrize(("kind", "options"), LAYERS)
@pytest.mark.parametrize("how", ["script", "trace"])
def test_layers_equal_torch(kind: str, options: Any, how: str) -> None:
    torch = pytest.importorskip("torch")
    text = (
        "class Model(torch.nn.Module):\n"
        "    def __init__(self, kind, options):\n"
        "        super().__init__()\n"
        "        self.layers = getattr(torch.nn, kind)(3, 4, **options)\n"
        "    def forward(self, x, n):\n"
        "        packed = pack_padded_sequence(x, n, enforce_sorted=False)\n"
        "        output, state = self.layers(packed)\n"
        "        return pad_packed_sequence(output), state\n"
        "f = Model\n"
    )
    results: list[Any] = []
    for lib in (weft, torch):
        model = function_of(text.replace("torch", lib.__name__), lib)
        lib.manual_seed(3)
        made = model(kind, options).eval()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if lib is torch else "error")
            run = lib.jit.script(made) if how == "script" else lib.jit.trace(
                made, batch(LENGTHS, lib), check_trace=False)  # fmt: skip
            outputs = run(*batch(OTHER_LENGTHS, lib))
        sum(t.square().sum() for t in flat(outputs) if t.is_floating_point()).backward()
        results.append([*flat(outputs), *(p.grad for p in made.parameters())])
    assert len(results[0]) == len(results[1])
    for mine, theirs in zip(*results):
        np.testing.assert_allclose(
            mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5
        )
