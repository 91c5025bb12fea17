"""What a program asks of tensors without computing: sizes, dtype, device; and tensors from data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from weft._ops.builtins.rows import builtin as _builtin

builtin = partial(_builtin, family="tensors")


def _attribute(name: str) -> Callable[[Any], Any]:
    return lambda self: getattr(self, name)


def _method(name: str) -> Callable[..., Any]:
    return lambda self, *args: getattr(self, name)(*args)


builtin("size(Tensor self) -> int[]", "tensor_size", lambda self: list(self.shape), "Its sizes.",
        ("total", "metadata"))  # fmt: skip
builtin("size.int(Tensor self, int dim) -> int", "a.size(b)", _method("size"), "One size.",
        ("metadata", "size"))  # fmt: skip
builtin("dim(Tensor self) -> int", "a.dim()", _method("dim"), "How many dimensions.",
        ("total", "metadata"))  # fmt: skip
builtin("ndimension(Tensor self) -> int", "a.dim()", _method("dim"), "How many dimensions.")
builtin("prim::ndim(Tensor self) -> int", "a.dim()", _method("dim"), "How many dimensions.")
builtin("numel(Tensor self) -> int", "a.numel()", _method("numel"), "How many elements.",
        ("total", "metadata"))  # fmt: skip
builtin("len.Tensor(Tensor t) -> int", "tensor_len(a)", len, "The size of the first dimension.")
builtin(
    "stride(Tensor self) -> int[]", "tensor_stride", lambda self: list(self.stride()),
    "Its strides, in elements.",
)  # fmt: skip
builtin("stride.int(Tensor self, int dim) -> int", "a.stride(b)", _method("stride"), "One stride.")
builtin("storage_offset(Tensor self) -> int", "a.offset()", _method("storage_offset"),
        "Where in its storage it starts, in elements.")  # fmt: skip
builtin("is_contiguous(Tensor self) -> bool", "a.is_contiguous()", _method("is_contiguous"),
        "Whether its elements lie in order.")  # fmt: skip
builtin("is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
        "tensor_lies_as", None, "Whether its elements lie in the order of a format.")  # fmt: skip
builtin("is_floating_point(Tensor self) -> bool", "is_floating(a.dtype())",
        _method("is_floating_point"), "Whether its dtype is a floating one.",
        ("total",))  # fmt: skip
builtin("is_complex(Tensor self) -> bool", "is_complex(a.dtype())", _method("is_complex"),
        "Whether its dtype is a complex one.", ("total",))  # fmt: skip
builtin("is_signed(Tensor self) -> bool", "is_signed(a.dtype())", None,
        "Whether its dtype has negative numbers.")  # fmt: skip
builtin("is_nonzero(Tensor self) -> bool", "tensor_to_bool", lambda self: bool(self.item()),
        "bool(self) of one element.")  # fmt: skip
builtin("element_size(Tensor self) -> int", "static_cast<int64_t>(a.item_size())",
        _method("element_size"), "Bytes of an element.")  # fmt: skip
builtin("is_same_size(Tensor self, Tensor other) -> bool", "a.sizes() == b.sizes()",
        lambda self, other: self.shape == other.shape, "Whether the sizes are equal.")  # fmt: skip
builtin("get_device(Tensor self) -> int", "device_number(a)", lambda self: -1,
        "The number of its device; -1 for the CPU.")  # fmt: skip
builtin("is_leaf(Tensor self) -> bool", "autograd::is_leaf(a)", None,
        "Whether it is no recorded result.", ("reads_state",))  # fmt: skip
builtin("is_inference(Tensor self) -> bool", "a.impl()->inference", None,
        "Whether it was made under inference mode.", ("reads_state",))  # fmt: skip
for _name in ("is_conj", "is_neg"):
    builtin(f"{_name}(Tensor self) -> bool", "tensor_never(a)", lambda self: False,
            "Always false: such views are not made.")  # fmt: skip

builtin("prim::dtype(Tensor a) -> ScalarType", "Value(a.dtype())", _attribute("dtype"),
        "Its dtype.", ("total", "metadata"))  # fmt: skip
builtin("prim::device(Tensor a) -> Device", "Value(a.device())", _attribute("device"),
        "Its device.", ("total", "metadata"))  # fmt: skip
builtin(
    "prim::layout(Tensor a) -> Layout", "tensor_layout", None, "Its layout: strided.", ("total",)
)
builtin("prim::shape(Tensor a) -> int[]", "tensor_size", lambda self: list(self.shape),
        "Its sizes.", ("metadata",))  # fmt: skip
builtin("prim::itemsize(Tensor a) -> int", "static_cast<int64_t>(a.item_size())",
        _attribute("itemsize"), "Bytes of an element.")  # fmt: skip
builtin("prim::nbytes(Tensor a) -> int", "a.numel() * static_cast<int64_t>(a.item_size())",
        _attribute("nbytes"), "Bytes of all elements.")  # fmt: skip
builtin("prim::is_cpu(Tensor a) -> bool", "a.device().type == DeviceType::CPU",
        lambda a: a.device.type == "cpu", "Whether it lies in the memory of the CPU.")  # fmt: skip
builtin("prim::is_cuda(Tensor a) -> bool", "a.device().type == DeviceType::CUDA",
        lambda a: a.device.type == "cuda", "Whether it lies on a CUDA device.",
        ("total",))  # fmt: skip
builtin("prim::is_meta(Tensor a) -> bool", "a.device().type == DeviceType::Meta",
        lambda a: a.device.type == "meta", "Whether it has no memory.")  # fmt: skip
for _name in (
    "is_sparse", "is_sparse_csr", "is_quantized", "is_nested", "is_mkldnn", "is_mps", "is_xpu",
    "is_xla", "is_vulkan", "is_ipu", "is_maia", "is_mtia",
):  # fmt: skip
    builtin(f"prim::{_name}(Tensor a) -> bool", "tensor_never(a)", lambda a: False,
            "Always false: there are no such tensors.", ("total", "never"))  # fmt: skip
builtin("prim::requires_grad(Tensor a) -> bool", "autograd::requires_grad(a)", None,
        "Whether gradients are recorded for it.", ("reads_state", "total"))  # fmt: skip
builtin("prim::grad(Tensor a) -> Tensor(*)?", "Value(autograd::grad(a))", None,
        "The gradient it has collected.", ("reads_state", "starts_gradients"))  # fmt: skip
builtin("prim::data(Tensor(a) a) -> Tensor(a)", "autograd::detach(a)", None,
        "The same elements, without a history.", ("reads_state",))  # fmt: skip
builtin("numpy_T(Tensor(a) self) -> Tensor(a)", "tensor_reversed", _attribute("T"),
        "The dimensions in reverse order.")  # fmt: skip
builtin("mT(Tensor(a) self) -> Tensor(a)", "tensor_mT", _attribute("mT"),
        "The last two dimensions exchanged.")  # fmt: skip
builtin("mH(Tensor(a) self) -> Tensor(a)", "tensor_mH", _attribute("mH"),
        "The last two dimensions exchanged, conjugated.")  # fmt: skip
builtin("H(Tensor(a) self) -> Tensor(a)", "tensor_H", _attribute("H"),
        "The conjugate transpose of a matrix.")  # fmt: skip
builtin("prim::name(Tensor a) -> str?", "tensor_name", lambda a: None, "Always None.")
builtin("requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)",
        "tensor_requires_grad_", None, "Starts or stops recording gradients.",
        ("starts_gradients",))  # fmt: skip
builtin("retain_grad(Tensor(a!) self) -> ()", "autograd::retain_grad(a)", None,
        "Keeps the gradient of a tensor that is no leaf.", ("side_effect",))  # fmt: skip
builtin("prim::retains_grad(Tensor a) -> bool", "autograd::retains_grad(a)", None,
        "Whether retain_grad() was asked for.", ("reads_state",))  # fmt: skip
builtin("detach_(Tensor(a!) self) -> Tensor(a!)", "tensor_detach_", None,
        "Forgets, in place, how the tensor was made.")  # fmt: skip
builtin("resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
        "tensor_resize_", None, "Gives it other sizes; new elements are undefined.",
        ("relayout",))  # fmt: skip
builtin("resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None)"
        " -> Tensor(a!)", "tensor_resize_as_", None,
        "resize_ to the sizes of another tensor.", ("relayout",))  # fmt: skip
builtin("cpu(Tensor(a) self) -> Tensor(a)", "tensor_cpu", None, "The tensor on the CPU.")

builtin("prim::type(Device self) -> str", "device_type", _attribute("type"), '"cpu", "cuda".')
builtin("prim::index(Device self) -> int?", "device_index", _attribute("index"),
        "The number of the device.")  # fmt: skip
builtin("str.Device(Device self) -> str", "to_text(a)", str, "str(self).")
builtin("device(str a) -> Device", "device_parse", None, "The device of that name.")
builtin("device.with_index(str type, int index) -> Device", "device_make", None,
        "A device by kind and number.")  # fmt: skip

_OPTIONS = "*, ScalarType? dtype=None, Device? device=None"
for _type in ("bool", "int", "float", "complex"):
    builtin(f"tensor.{_type}({_type} t, {_OPTIONS}, bool requires_grad=False) -> Tensor",
            "tensor_of", None, "A 0-d tensor.", ("of_data",))  # fmt: skip
    builtin(f"as_tensor.{_type}({_type} t, {_OPTIONS}) -> Tensor",
            "tensor_like", None, "A 0-d tensor.")  # fmt: skip
builtin(f"tensor(t[] data, {_OPTIONS}, bool requires_grad=False) -> Tensor", "tensor_of", None,
        "A tensor of the numbers in nested lists.", ("of_data",))  # fmt: skip
builtin(f"as_tensor.list(t[] data, {_OPTIONS}) -> Tensor", "tensor_like", None,
        "A tensor of the numbers in nested lists.")  # fmt: skip
builtin(f"as_tensor(Tensor(a) data, {_OPTIONS}) -> Tensor(a)", "tensor_as", None,
        "The tensor itself, unless dtype or device differ.")  # fmt: skip
builtin("prim::NumToTensor.Scalar(Scalar a) -> Tensor", "Tensor::scalar(a, a.dtype())", None,
        "A 0-d tensor.")  # fmt: skip
builtin("prim::NumToTensor.bool(bool a) -> Tensor", "Tensor::scalar(Scalar(a), DType::Bool)", None,
        "A 0-d tensor.")  # fmt: skip
builtin("prim::tolist(Tensor self, int dim, int elem_ty) -> Any", "tensor_to_list",
        lambda self, dim, elem_ty: self.tolist(),
        "Nested lists of its elements; elem_ty is 0 for int, 1 for float, 2 for complex and 3 for "
        "bool.")  # fmt: skip
builtin("prim::dtype_number(ScalarType a) -> int", "int64_t{info_of(boxed::dtype(a)).number}",
        _attribute("_number"), "TorchScript's number of a dtype.", ("total",))  # fmt: skip
builtin("prim::layout_number(Layout a) -> int", "a.to_int()", None,
        "TorchScript's number of a layout.", ("total",))  # fmt: skip
builtin("prim::numbered_dtype(int number) -> ScalarType", "Value(dtype_of_number(a))", None,
        "The dtype of TorchScript's number.")  # fmt: skip
builtin("promote_types(ScalarType type1, ScalarType type2) -> ScalarType", "promote_dtypes", None,
        "The dtype of a result of both.")  # fmt: skip
builtin("can_cast(ScalarType from_, ScalarType to) -> bool", "can_cast_dtypes", None,
        "Whether a result of one may be written into the other.")  # fmt: skip
builtin("broadcast_shapes(int[] a, int[] b) -> int[]", "shapes_broadcast", None,
        "The sizes that both stretch to.")  # fmt: skip
builtin("_infer_size(int[] a, int[] b) -> int[]", "shapes_broadcast", None,
        "The sizes that both stretch to.")  # fmt: skip
builtin("is_floating_point.dtype(ScalarType self) -> bool", "is_floating(boxed::dtype(a))",
        _attribute("is_floating_point"), "Whether it is a floating dtype.", ("total",))  # fmt: skip
builtin("is_complex.dtype(ScalarType self) -> bool", "is_complex(boxed::dtype(a))",
        _attribute("is_complex"), "Whether it is a complex dtype.", ("total",))  # fmt: skip
