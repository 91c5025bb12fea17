"""Recurrent layers: one layer in one direction over all steps (LSTM, GRU, RNN)."""

from typing import Any

from weft._kernels.lang import sigmoid, tanh
from weft._ops.table import backward_of, backward_op, body_of, ops


@body_of(
    "_recurrent_layer(Tensor input, Tensor? batch_sizes, Tensor hidden, Tensor? memory, "
    "Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh, Tensor? projection, "
    "str mode, bool backwards) -> (Tensor, Tensor, Tensor)",
)
def _recurrent_layer(
    input: Any, batch_sizes: Any, hidden: Any, memory: Any, weight_ih: Any, weight_hh: Any,
    bias_ih: Any, bias_hh: Any, projection: Any, mode: Any, backwards: Any,
) -> Any:  # fmt: skip
    """The outputs of all steps [t, n, features], or of packed data [rows, features] with its batch
    sizes, the last hidden state and, of LSTM, the last memory."""
    # The inputs of all steps at once: one large product instead of one a step.
    steps = input.linear(weight_ih, bias_ih)
    results = steps._recurrent_steps(
        batch_sizes, hidden, memory, weight_hh, bias_hh, projection, mode, backwards
    )
    # Autocast lowers plain layers and those of LSTM as a whole; of the others the products alone:
    # cells that add to their state keep its precision. The loop over the steps computes in float32
    # anyway and is rounded here (without autocast there is one dtype, and nothing to round).
    low = steps.dtype
    is_whole = mode == "LSTM" and batch_sizes is None and projection is None
    state = low if is_whole else ops.promote(low, hidden.dtype if memory is None else memory.dtype)
    is_plain = mode == "RNN_TANH" or mode == "RNN_RELU"
    shown = low if is_plain or projection is not None else state
    return results[0].to(shown), results[1].to(shown), results[2].to(state)


backward_op(
    "_recurrent_steps(Tensor steps, Tensor? batch_sizes, Tensor hidden, Tensor? memory, "
    "Tensor weight, Tensor? bias, Tensor? projection, str mode, bool backwards)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    doc="_recurrent_layer of inputs that have met their weight; also gives what its gradient "
    "reads: the gates before their activations, the memories and, with a projection, the hidden "
    "states before it.",
    grad={
        "steps, hidden, memory, weight, bias, projection": "_recurrent_steps_backward(grads[0], "
        "grads[1], grads[2], steps, batch_sizes, hidden, memory, weight, bias, projection, "
        "result0, result3, result4, result5, mode, backwards)"
    },
    tags=("partial_grads", "autocast_float32"),
    shape="each([*steps[:-1], hidden[1]], hidden, [0] if memory is absent else memory, steps, "
    "[0] if memory is absent else [*steps[:-1], memory[1]], "
    "[0] if projection is absent else [*steps[:-1], memory[1]])",
    result=("steps",) * 6,
)
backward_op(
    "_recurrent_steps_backward(Tensor? grad_output, Tensor? grad_hidden, Tensor? grad_memory, "
    "Tensor steps, Tensor? batch_sizes, Tensor hidden, Tensor? memory, Tensor weight, "
    "Tensor? bias, Tensor? projection, Tensor output, Tensor gates, Tensor memories, "
    "Tensor states, str mode, bool backwards)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    doc="The gradients of _recurrent_steps for its tensors.",
    tags=("composite",),
    shape="each(steps, hidden, memory, weight, bias, projection)",
    result=("steps",) * 6,
)


# ---- the cell of gated recurrent units; that of long short-term memory stands in activations ----


@backward_of(
    "_gru_cell(Tensor reset_x, Tensor update_x, Tensor new_x, Tensor reset_h, Tensor update_h, "
    "Tensor new_h, Tensor hidden) -> Tensor",
    "pointwise",
    dtypes=("float32", "float64"),
    tags=("nondifferentiable",),
)
def _gru_cell(
    reset_x: Any, update_x: Any, new_x: Any, reset_h: Any, update_h: Any, new_h: Any, hidden: Any
) -> Any:
    """The next hidden state, from what the input and the hidden state give to each gate."""
    new = tanh(new_x + sigmoid(reset_x + reset_h) * new_h)
    return new + sigmoid(update_x + update_h) * (hidden - new)


@backward_of(
    "_gru_cell_backward(Tensor grad, Tensor reset_x, Tensor update_x, Tensor new_x, "
    "Tensor reset_h, Tensor update_h, Tensor new_h, Tensor hidden)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "pointwise",
    dtypes=("float32", "float64"),
    tags=("nondifferentiable",),
)
def _gru_cell_backward(
    grad: Any, reset_x: Any, update_x: Any, new_x: Any, reset_h: Any, update_h: Any, new_h: Any,
    hidden: Any,
) -> Any:  # fmt: skip
    """The gradients of _gru_cell for reset, update, new_x, new_h and hidden."""
    reset, update = sigmoid(reset_x + reset_h), sigmoid(update_x + update_h)
    new = tanh(new_x + reset * new_h)
    to_new = grad * (1 - update) * (1 - new * new)
    to_update = grad * (hidden - new) * update * (1 - update)
    to_reset = to_new * new_h * reset * (1 - reset)
    return to_reset, to_update, to_new, to_new * reset, grad * update
