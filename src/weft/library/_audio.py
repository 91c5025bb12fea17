"""torchaudio's operators (`torch.ops.torchaudio`): recursive filters, alignments, a loss."""

from __future__ import annotations

from weft import _C
from weft._C import Tensor, constant_pad_nd
from weft.autograd._run import grad
from weft.autograd.grad_mode import enable_grad
from weft.library._custom import custom_op

_BLOCK = 64  # samples that one product filters


@custom_op("_torchaudio::is_align_available", mutates_args=())
def is_align_available() -> bool:
    return True


@custom_op("_torchaudio::cuda_version", mutates_args=())
def cuda_version() -> int:
    return -1


# Recursive filters -------------------------------------------------------------------------------


def _responses(a: Tensor) -> tuple[Tensor, Tensor]:
    """What a block of samples gives, and what the outputs before it do: [channels, block, block]
    and [channels, order, block], both to be multiplied from the right. a: [channels, order]."""
    channels, order = a.shape
    states = _C.eye(order, dtype=a.dtype).expand(channels, -1, -1)  # outputs before, latest first
    steps = []
    for _ in range(_BLOCK):
        out = -(states @ a.unsqueeze(2))
        steps.append(out)
        states = _C.cat([out, states[:, :, :-1]], 2)
    before = _C.cat(steps, 2)
    # An impulse is an output that only the recursion repeats: 1, then what it gives as the latest.
    impulse = constant_pad_nd(before[:, 0, :-1], [1, 0], 1.0)
    lag = _C.arange(_BLOCK) - _C.arange(_BLOCK).unsqueeze(1)
    within = impulse[:, lag.clamp(min=0)] * (lag >= 0)
    return within, before


def _filtered(x: Tensor, a: Tensor) -> Tensor:
    """y[n] = x[n] - a[0] y[n - 1] - a[1] y[n - 2]... along the last of [channels, batch, samples],
    with coefficients [channels, order], from y = 0. By blocks: products filter each as if nothing
    had been before it, and then add what the last outputs before it give."""
    channels, batch, samples = x.shape
    order = a.size(1)
    if order == 0 or samples == 0:
        return x.clone()
    within, before = _responses(a.double())
    blocks = constant_pad_nd(x.double(), [0, -samples % _BLOCK]).unflatten(2, [-1, _BLOCK])
    blocks = (blocks.flatten(1, 2) @ within).reshape(blocks.shape)
    last = blocks.new_zeros(channels, batch, order)
    for i in range(blocks.size(2)):
        blocks[:, :, i] += last @ before
        last = _C.cat([blocks[:, :, i].flip(2), last], 2)[:, :, :order]
    return blocks.flatten(2)[:, :, :samples].to(x.dtype)


@custom_op("torchaudio::_lfilter_core_loop", mutates_args=("padded_output_waveform",))
def lfilter_core_loop(
    input_signal_windows: Tensor, a_coeff_flipped: Tensor, padded_output_waveform: Tensor
) -> None:
    """Filters [batch, channels, samples] by coefficients [channels, order + 1], the last of which
    is 1, into what lies behind the first `order` samples, which are 0."""
    order = a_coeff_flipped.size(1) - 1
    found = _filtered(input_signal_windows.transpose(0, 1), a_coeff_flipped[:, :-1].flip(1))
    padded_output_waveform[:, :, order:] = found.transpose(0, 1)


@custom_op(
    "torchaudio::_overdrive_core_loop", mutates_args=("last_in", "last_out", "output_waveform")
)
def overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output_waveform: Tensor
) -> None:
    """Half the waveform, and what a filter against constant offsets leaves of the distorted one,
    [channels, samples]."""
    steps = _C.cat([temp[:, :1] - last_in.unsqueeze(1), temp.diff(dim=1)], 1)
    steps[:, 0] += 0.995 * last_out
    found = _filtered(steps.unsqueeze(0), steps.new_tensor([[-0.995]]))[0]
    output_waveform.copy_(waveform * 0.5 + found * 0.75)
    last_in.copy_(temp[:, -1])
    last_out.copy_(found[:, -1])


# Sequences ---------------------------------------------------------------------------------------


@custom_op("torchaudio::forced_align", mutates_args=())
def forced_align(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> tuple[Tensor, Tensor]:
    """The likeliest labels of each step that read as the target (Viterbi over the states of CTC:
    Graves and others 2006), [1, time], and log_probs. One sequence, [1, time, classes]."""
    if log_probs.dim() != 3 or log_probs.size(0) != 1 or targets.dim() != 2 or targets.size(0) != 1:
        raise RuntimeError(
            "forced_align: expected log_probs [1, time, classes] and targets [1, length], got "
            f"{list(log_probs.shape)} and {list(targets.shape)}"
        )
    steps, length = int(input_lengths[0]), int(target_lengths[0])
    target = targets[0, :length].long()
    repeated = int((target[1:] == target[:-1]).sum())
    if not length + repeated <= steps <= log_probs.size(1) or not 0 < length <= targets.size(1):
        raise RuntimeError(
            f"forced_align: expected a target, at least {length + repeated} steps for it, and "
            f"lengths within the tensors, got {length} labels, {steps} steps of {log_probs.size(1)}"
        )
    labels = _C.full((2 * length + 1,), blank)
    labels[1::2] = target
    emitted = log_probs[0, :steps, labels]  # [time, states]
    may_skip = constant_pad_nd((labels[2:] != blank) & (labels[2:] != labels[:-2]), [2, 0])
    none = float("-inf")
    score = _C.full((2 * length + 1,), none, dtype=log_probs.dtype)
    score[:2] = emitted[0, :2]
    back = []
    for t in range(1, steps):
        one = constant_pad_nd(score[:-1], [1, 0], none)
        two = constant_pad_nd(score[:-2], [2, 0], none).masked_fill(~may_skip, none)
        best, move = _C.stack([score, one, two]).max(0)
        score = best + emitted[t]
        back.append(move)
    state = int(score[-2:].argmax()) + max(2 * length - 1, 0)
    path = [state]
    for move in reversed(back):
        state -= int(move[state])
        path.append(state)
    found = labels[_C.tensor(path[::-1])].to(targets.dtype)
    return found.unsqueeze(0), log_probs.clone()


def _transducer(log_probs: Tensor, target: Tensor, blank: int) -> Tensor:
    """-log of the probability of a target [length] by log_probs [time, length + 1, classes]: that
    of all ways to read the time and to write the target together (Graves 2012)."""
    stay = log_probs[:, :, blank]
    write = log_probs[:, :-1].gather(2, target.expand(log_probs.size(0), -1).unsqueeze(2))
    written = constant_pad_nd(
        write.squeeze(2).cumsum(1), [1, 0]
    )  # from the start, within a step of time
    alpha = written[0]
    for t in range(1, log_probs.size(0)):
        alpha = (alpha + stay[t - 1] - written[t]).logcumsumexp(0) + written[t]
    return -(alpha[-1] + stay[-1, -1])


@custom_op("torchaudio::rnnt_loss_forward", mutates_args=())
def rnnt_loss_forward(
    logits: Tensor, targets: Tensor, logit_lengths: Tensor, target_lengths: Tensor, blank: int,
    clamp: float, fused_log_softmax: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Losses [batch] of logits [batch, time, length + 1, classes], and their gradients."""
    costs, slopes = [], _C.zeros_like(logits)
    for i in range(logits.size(0)):
        steps, length = int(logit_lengths[i]), int(target_lengths[i])
        if not (0 < steps <= logits.size(1) and 0 <= length < logits.size(2)):
            raise RuntimeError(
                f"rnnt_loss: expected lengths within {list(logits.shape)}, got {steps} and {length}"
            )
        with enable_grad():
            given = logits[i, :steps, : length + 1].detach().float().requires_grad_()
            log_probs = given.log_softmax(2) if fused_log_softmax else given
            cost = _transducer(log_probs, targets[i, :length].long(), blank)
            (slope,) = grad(cost, [given])
        costs.append(cost.detach().to(logits.dtype))
        slopes[i, :steps, : length + 1] = slope.clamp(-clamp, clamp) if clamp > 0 else slope
    return _C.stack(costs), slopes
