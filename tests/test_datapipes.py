"""Streams of samples that are built by chaining steps."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from libraries import both


def steps(lib: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.utils.data.datapipes.iter")


@both
@pytest.mark.filterwarnings("ignore")
def test_steps(lib: Any) -> None:
    wrap = steps(lib).IterableWrapper
    numbers = wrap(range(7))
    assert [list(b) for b in numbers.batch(3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [list(b) for b in numbers.batch(3, drop_last=True)] == [[0, 1, 2], [3, 4, 5]]
    assert list(numbers.filter(lambda n: n % 2 == 1).map(lambda n: n * n)) == [1, 9, 25]
    assert list(numbers.concat(wrap("ab"))) == [0, 1, 2, 3, 4, 5, 6, "a", "b"]
    assert list(numbers.zip(wrap("ab"))) == [(0, "a"), (1, "b")]
    assert next(iter(numbers.batch(3).collate())).tolist() == [0, 1, 2]
    assert (len(numbers), len(numbers.batch(3)), len(numbers.concat(numbers))) == (7, 3, 14)
    assert list(numbers) == list(numbers) == list(range(7))


@both
@pytest.mark.filterwarnings("ignore")
def test_columns(lib: Any) -> None:
    rows = steps(lib).IterableWrapper([(1, 2), (3, 4)])
    assert list(rows.map(lambda a: -a, input_col=1)) == [(1, -2), (3, -4)]
    assert list(rows.map(lambda a, b: a + b, input_col=[0, 1], output_col=-1)) == [
        (1, 2, 3),
        (3, 4, 7),
    ]
    assert list(rows.filter(lambda a: a > 1, input_col=0)) == [(3, 4)]
    named = steps(lib).IterableWrapper([{"x": 2}])
    assert list(named.map(lambda x: x + 1, input_col="x", output_col="y")) == [{"x": 2, "y": 3}]
    with pytest.raises(ValueError):
        rows.map(lambda a: a, output_col=1)


@both
@pytest.mark.filterwarnings("ignore")
def test_the_order_follows_the_seed(lib: Any) -> None:
    lib.manual_seed(4)
    once = list(steps(lib).IterableWrapper(range(9)).shuffle(buffer_size=4))
    assert sorted(once) == list(range(9))
    lib.manual_seed(4)
    assert list(steps(lib).IterableWrapper(range(9)).shuffle(buffer_size=4)) == once


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_the_same_seed_gives_pytorchs_order() -> None:
    torch = pytest.importorskip("torch")
    import weft

    orders = []
    for lib in (weft, torch):
        lib.manual_seed(4)
        orders.append(list(steps(lib).IterableWrapper(range(50)).shuffle(buffer_size=8)))
    assert orders[0] == orders[1]


@both
@pytest.mark.filterwarnings("ignore")
def test_steps_of_programs_and_loaders(lib: Any) -> None:
    data = lib.utils.data

    class Doubled(data.IterDataPipe):  # type: ignore[name-defined, misc]
        def __init__(self, source: Any) -> None:
            super().__init__()
            self.source = source

        def __iter__(self) -> Any:
            return (2 * value for value in self.source)

    name = f"doubled_in_{lib.__name__}"
    data.functional_datapipe(name)(Doubled)
    pipe = getattr(steps(lib).IterableWrapper(range(4)), name)()
    assert isinstance(pipe, data.IterableDataset)
    assert list(pipe.batch(3)) == [[0, 2, 4], [6]]
    with pytest.raises(Exception, match=name):
        data.functional_datapipe(name)(Doubled)
    with pytest.raises(AttributeError):
        pipe.no_such_step  # noqa: B018


def test_data_frames_are_refused() -> None:
    import weft

    with pytest.raises(
        NotImplementedError, match="expected no tracing of data frames for 'framed'"
    ):
        weft.utils.data.functional_datapipe("framed", enable_df_api_tracing=True)


def test_workers_share_a_stream() -> None:
    import weft
    from weft.utils.data.datapipes.iter import IterableWrapper

    pipe = IterableWrapper(range(10)).sharding_filter()
    loader = weft.utils.data.DataLoader(pipe, batch_size=None, num_workers=2)
    assert sorted(int(value) for value in loader) == list(range(10))
    loader = weft.utils.data.DataLoader(IterableWrapper(range(4)).map(float), batch_size=3)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2], [3]]


@both
@pytest.mark.filterwarnings("ignore")
def test_refuses(lib: Any) -> None:
    numbers = steps(lib).IterableWrapper(range(4))
    with pytest.raises(ValueError):
        list(numbers.filter(lambda n: n % 2))
    for make in (lambda: numbers.batch(0), lambda: numbers.shuffle(buffer_size=0)):
        with pytest.raises((ValueError, AssertionError)):
            make()
