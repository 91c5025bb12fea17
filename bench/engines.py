"""Archives in engines for inference, as functions of their input, a tensor of PyTorch."""

from __future__ import annotations

import importlib
import importlib.util
import io
from collections.abc import Callable
from typing import Any

import weft


def _package(name: str) -> Any:
    if importlib.util.find_spec(name) is None:
        raise RuntimeError(f"{name}: expected the package (extra bench), got none")
    return importlib.import_module(name)


def _exported(path: str, x: Any) -> bytes:
    """The archive in ONNX's format, written by weft."""
    _package("onnx")
    file = io.BytesIO()
    example = weft.from_numpy(x.numpy())
    weft.onnx.export(weft.jit.load(path), (example,), file, input_names=["x"])
    return file.getvalue()


def frozen(torch: Any, path: str, x: Any) -> Callable[[Any], Any]:
    """The library's own: frozen."""
    return torch.jit.freeze(torch.jit.load(path))  # type: ignore[no-any-return]


def onnxruntime(torch: Any, path: str, x: Any) -> Callable[[Any], Any]:
    """ONNX Runtime on the processor, with as many threads as the library has."""
    package = _package("onnxruntime")
    options = package.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    providers = ["CPUExecutionProvider"]
    session = package.InferenceSession(_exported(path, x), options, providers=providers)
    return lambda x: torch.from_numpy(session.run(None, {"x": x.numpy()})[0])


def openvino(torch: Any, path: str, x: Any) -> Callable[[Any], Any]:
    """OpenVINO on the processor in float32, with as many threads as the library has."""
    core = _package("openvino").Core()
    settings = {
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    model = core.compile_model(core.read_model(_exported(path, x)), "CPU", settings)
    return lambda x: torch.from_numpy(model([x.numpy()])[0])


ENGINES = {"torch.jit, frozen": frozen, "onnxruntime": onnxruntime, "OpenVINO": openvino}
