"""torchaudio's operators by weft.ops.load_library, against direct loops."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import weft


@pytest.fixture(scope="module")
def audio() -> Any:
    for name in ("_torchaudio", "libtorchaudio"):
        weft.ops.load_library(f"site-packages/torchaudio/lib/{name}.so")
    assert weft.ops._torchaudio.is_align_available()
    return weft.ops.torchaudio


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [0, 1, 2, 5])
@pytest.mark.parametrize("samples", [0, 1, 63, 64, 200])
def test_recursive_filter(audio: Any, order: int, samples: int, dtype: str) -> None:
    generator = np.random.default_rng(order)
    x = generator.normal(size=(3, 2, samples)).astype(dtype)
    # Poles within the unit circle, other ones for each channel.
    a = np.stack(
        [np.atleast_1d(np.poly(generator.uniform(-0.9, 0.9, order))) for _ in range(2)]
    ).astype(dtype)
    y = np.zeros((3, 2, samples + order))
    for n in range(samples):
        past = y[:, :, n : n + order][:, :, ::-1]
        y[:, :, n + order] = x[:, :, n] - (past * a[:, 1:]).sum(2)
    found = weft.zeros(3, 2, samples + order, dtype=getattr(weft, dtype))
    given = weft.from_numpy(x.copy()), weft.from_numpy(a[:, ::-1].copy())
    audio._lfilter_core_loop(*given, found)
    # Computed in float64, and rounded once.
    scale = np.abs(y).max(initial=0)
    np.testing.assert_allclose(found.numpy(), y, np.finfo(dtype).eps, atol=1e-12 * scale)


def test_overdrive(audio: Any) -> None:
    generator = np.random.default_rng(1)
    waveform, temp = generator.normal(size=(2, 2, 130))
    last_in, last_out = generator.normal(size=(2, 2))
    tensors = [weft.from_numpy(each.copy()) for each in (waveform, temp, last_in, last_out)]
    found = weft.zeros(2, 130, dtype=weft.float64)
    audio._overdrive_core_loop(*tensors, found)
    expected = np.zeros_like(waveform)
    for i in range(130):
        last_out = temp[:, i] - last_in + 0.995 * last_out
        last_in = temp[:, i]
        expected[:, i] = waveform[:, i] * 0.5 + last_out * 0.75
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(tensors[2].numpy(), last_in)
    np.testing.assert_allclose(tensors[3].numpy(), last_out, rtol=1e-12)


def read(path: tuple[int, ...], blank: int) -> list[int]:
    """What a path of CTC says: repeats are one, blanks nothing."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


@pytest.mark.parametrize("target", [[1], [2, 1], [1, 1], [2, 2, 1], [1, 2, 1]])
@pytest.mark.parametrize("blank", [0, 2])
def test_alignment_is_the_likeliest_path(audio: Any, target: list[int], blank: int) -> None:
    target = [(label if label != blank else 0) for label in target]
    log_probs = np.log(np.random.default_rng(len(target)).dirichlet(np.ones(3), 6))
    paths = [p for p in itertools.product(range(3), repeat=6) if read(p, blank) == target]
    best = max(paths, key=lambda path: sum(log_probs[t, label] for t, label in enumerate(path)))
    given = weft.from_numpy(log_probs).unsqueeze(0), weft.tensor([target], dtype=weft.int32)
    lengths = weft.tensor([6]), weft.tensor([len(target)])
    found, scores = audio.forced_align(*given, *lengths, blank)
    assert found.tolist() == [list(best)] and found.dtype == weft.int32
    assert weft.equal(scores, given[0])


def test_alignments_that_are_refused(audio: Any) -> None:
    lengths = weft.tensor([3]), weft.tensor([2])
    for shape, target in (((1, 2, 4), [[1, 2]]), ((1, 3, 4), [[1]]), ((2, 3, 4), [[1, 2], [1, 2]])):
        with pytest.raises(RuntimeError, match="forced_align: expected"):
            audio.forced_align(weft.zeros(*shape), weft.tensor(target), *lengths, 0)
    with pytest.raises(RuntimeError, match="forced_align: expected a target, at least 3 steps"):
        audio.forced_align(
            weft.zeros(1, 9, 4), weft.tensor([[1, 1]]), weft.tensor([2]), weft.tensor([2]), 0
        )


def transducer(log_probs: np.ndarray, target: list[int], blank: int) -> float:
    """-log of the sum over all ways: a step of time or a label, in any order, a step at the end."""
    steps, total = log_probs.shape[0], 0.0
    for when in itertools.combinations_with_replacement(range(steps), len(target)):
        score, written = 0.0, 0
        for t in range(steps):
            while written < len(target) and when[written] == t:
                score += log_probs[t, written, target[written]]
                written += 1
            score += log_probs[t, written, blank]
        total += math.exp(score)
    return -math.log(total)


def test_transducer_loss(audio: Any) -> None:
    logits = np.random.default_rng(2).normal(size=(3, 4, 3, 5))
    targets = [[1, 3], [2, 0], [4, 1]]
    steps, lengths = [4, 3, 1], [2, 0, 1]
    given = weft.from_numpy(logits.astype(np.float32)).requires_grad_()

    def call(clamp: float) -> Any:
        sizes = (weft.tensor(each, dtype=weft.int32) for each in (targets, steps, lengths))
        return audio.rnnt_loss_forward(given, *sizes, 0, clamp, True)

    costs, slopes = call(-1.0)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for i in range(3):
        parts = log_probs[i, : steps[i], : lengths[i] + 1]
        assert float(costs[i]) == pytest.approx(
            transducer(parts, targets[i][: lengths[i]], 0), 1e-5
        )
        moved = logits.copy()
        moved[i, 0, 0, 2] += 1e-4
        changed = moved[i] - np.log(np.exp(moved[i]).sum(-1, keepdims=True))
        after = transducer(changed[: steps[i], : lengths[i] + 1], targets[i][: lengths[i]], 0)
        slope = (after - transducer(parts, targets[i][: lengths[i]], 0)) / 1e-4
        assert float(slopes[i, 0, 0, 2]) == pytest.approx(slope, abs=1e-3)
        assert not slopes[i, steps[i] :].any() and not slopes[i, :, lengths[i] + 1 :].any()
    weft.testing.assert_close(call(0.05)[1], slopes.clamp(-0.05, 0.05))
    with pytest.raises(RuntimeError, match="rnnt_loss: expected lengths within"):
        audio.rnnt_loss_forward(
            given, *(weft.tensor(each) for each in (targets, [5, 1, 1], lengths)), 0, -1.0, True
        )
