"""Gradients inside programs: what weft.autograd offers in Python."""

from __future__ import annotations

from weft._ops.builtins.rows import builtin


def _row(text: str, cpp: str, doc: str) -> None:
    builtin(text, cpp, None, doc, ("side_effect", "starts_gradients"), "gradients")


_row(
    "grad(Tensor[] outputs, Tensor[] inputs, Tensor?[]? grad_outputs=None, "
    "bool? retain_graph=None, bool create_graph=False, bool allow_unused=False) -> Tensor?[]",
    "autograd_grad",
    doc="Gradients of outputs with respect to inputs: weft.autograd.grad.",
)
_row(
    "backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, "
    "bool create_graph=False, Tensor[]? inputs=None) -> ()",
    "autograd_backward",
    doc="Adds the gradient of a tensor into the `.grad` of the leaves: Tensor.backward.",
)
_row(
    "autograd::backward(Tensor[] tensors, Tensor?[]? grad_tensors=None, bool? retain_graph=None, "
    "bool create_graph=False) -> ()",
    "autograd_backward_all",
    doc="Adds the gradients of tensors into the `.grad` of the leaves: weft.autograd.backward.",
)
