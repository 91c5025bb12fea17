"""weft.utils.tensorboard: what is written is what TensorBoard's own reader finds."""

import importlib
import io
import math
import struct
import warnings
import wave
import zlib

import numpy as np
import pytest

import weft
from weft import nn

pytestmark = pytest.mark.parity  # tensorboard is among the extras of parity tests
pytest.importorskip("tensorboard")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

SummaryWriter = weft.utils.tensorboard.SummaryWriter


def read(folder):
    """What TensorBoard finds in a folder."""
    found = EventAccumulator(str(folder), size_guidance={"images": 0, "audio": 0, "tensors": 0})
    return found.Reload()


def pixels_of(png):
    """The bytes [height, width, channels] of a PNG file without filters."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    start = png.index(b"IDAT")
    (size,) = struct.unpack(">I", png[start - 4 : start])
    data = zlib.decompress(png[start + 4 : start + 4 + size])
    return np.frombuffer(data, np.uint8).reshape(height, -1)[:, 1:].reshape(height, width, -1)


def test_numbers(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", weft.tensor(0.5), 3, walltime=7.0)
        writer.add_scalar("loss", np.float32(0.25), 4)
        writer.add_scalar("exact", math.pi, 1, new_style=True, double_precision=True)
        writer.add_scalars("both", {"a": 1, "b": weft.tensor([2.0])}, 5)
        with pytest.raises(ValueError, match="add_scalar: expected a number, got 2 elements"):
            writer.add_scalar("loss", weft.ones(2))
    found = read(tmp_path)
    assert [(e.step, e.value) for e in found.Scalars("loss")] == [(3, 0.5), (4, 0.25)]
    assert found.Scalars("loss")[0].wall_time == 7.0
    assert found.Tensors("exact")[0].tensor_proto.double_val[0] == math.pi
    assert [read(tmp_path / f"both_{n}").Scalars("both")[0].value for n in "ab"] == [1, 2]


def test_values_are_tensors_arrays_or_numbers(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for write in (writer.add_scalar, writer.add_histogram, writer.add_image, writer.add_audio):
            with pytest.raises(NotImplementedError, match="or a number, got list"):
                write("a", [1.0, 2.0])
        with pytest.raises(NotImplementedError, match="got NoneType"):
            writer.add_scalar("a", None)
        writer.add_histogram_raw("a", 0.0, 1.0, 2, 1.0, 1.0, [0.5, 1.0], [1, 1])


@pytest.mark.parametrize("bins, most", [("tensorflow", None), ("auto", None), (40, 10)])
def test_histograms(tmp_path, bins, most):
    values = weft.randn(1000, generator=weft.Generator().manual_seed(1))
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("weights", values, 2, bins=bins, max_bins=most)
    (event,) = read(tmp_path).Histograms("weights")
    held = event.histogram_value
    assert held.num == 1000 and sum(held.bucket) == 1000
    assert held.min == values.min() and held.max == values.max()
    assert held.sum == pytest.approx(float(values.double().sum()))
    for limit, count in zip(held.bucket_limit, np.cumsum(held.bucket)):
        assert int((values < limit).sum()) <= count <= int((values <= limit).sum())


def test_images(tmp_path):
    image = weft.arange(24, dtype=weft.uint8).reshape(2, 4, 3)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("rgb", image, 1, dataformats="HWC")
        writer.add_image("grey", image[..., 0] / 255, 1, dataformats="HW")
        writer.add_images("grid", weft.stack([image.permute(2, 0, 1)] * 9), 1)
        with pytest.raises(ValueError, match="add_image: expected dataformats for 3"):
            writer.add_image("wrong", image, dataformats="HW")
    found = read(tmp_path)
    shown = {tag: found.Images(tag)[0] for tag in found.Tags()["images"]}
    assert (pixels_of(shown["rgb"].encoded_image_string) == image.numpy()).all()
    grey = pixels_of(shown["grey"].encoded_image_string)
    assert (grey == image[..., :1].numpy()).all() and grey.shape == (2, 4, 3)
    assert (shown["grid"].height, shown["grid"].width) == (4, 32)


class Figure:
    """What add_figure asks of Matplotlib's figures, which are their own canvas here."""

    def __init__(self):
        self.canvas, self.calls = self, []

    def draw(self):
        self.calls.append("draw")

    def clear(self):
        self.calls.append("clear")

    def buffer_rgba(self):
        assert self.calls == ["draw"]
        return np.arange(24, dtype=np.uint8).reshape(3, 2, 4)


def test_figures(tmp_path):
    figure = Figure()
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("plot", figure, 1)
    (event,) = read(tmp_path).Images("plot")
    pixels = pixels_of(event.encoded_image_string)
    assert (pixels == np.arange(24).reshape(3, 2, 4)[..., :3]).all()
    assert figure.calls == ["draw", "clear"]


def test_sound_and_text(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("beep", weft.tensor([0.0, 1.0, -1.0]), 1, sample_rate=8000)
        writer.add_text("note", "**bold** é", 2)
    found = read(tmp_path)
    with wave.open(io.BytesIO(found.Audio("beep")[0].encoded_audio_string)) as file:
        assert file.getframerate() == 8000
        assert np.frombuffer(file.readframes(3), "<i2").tolist() == [0, 32767, -32767]
    (event,) = found.Tensors("note/text_summary")
    assert event.tensor_proto.string_val[0].decode() == "**bold** é"


def chunks_of(png):
    """The kinds and contents of a PNG file's chunks, whose check sums are right."""
    place, made = 8, []
    while place < len(png):
        (size,) = struct.unpack(">I", png[place : place + 4])
        kind, data = png[place + 4 : place + 8], png[place + 8 : place + 8 + size]
        assert struct.unpack(">I", png[place + 8 + size :][:4]) == (zlib.crc32(kind + data),)
        made.append((kind, data))
        place += size + 12
    return made


def test_videos(tmp_path):
    frames = weft.arange(3 * 2 * 3 * 2 * 4, dtype=weft.uint8).reshape(3, 2, 3, 2, 4)
    with SummaryWriter(tmp_path) as writer:
        writer.add_video("clips", frames, 1, fps=8)
        with pytest.raises(ValueError, match="add_video: expected"):
            writer.add_video("wrong", frames[0])
    (event,) = read(tmp_path).Images("clips")
    assert (event.height, event.width) == (2, 16)  # a place is left
    chunks = chunks_of(event.encoded_image_string)
    assert [kind for kind, _ in chunks] == [
        b"IHDR",
        b"acTL",
        b"fcTL",
        b"IDAT",
        b"fcTL",
        b"fdAT",
        b"IEND",
    ]
    first, second = zlib.decompress(chunks[3][1]), zlib.decompress(chunks[5][1][4:])
    for i, data in enumerate((first, second)):
        shown = np.frombuffer(data, np.uint8).reshape(2, -1)[:, 1:].reshape(2, 16, 3)
        assert (shown[:, 8:12] == frames[2, i].permute(1, 2, 0).numpy()).all()
        assert (shown[:, 12:] == 0).all()
    assert struct.unpack(">HH", chunks[2][1][20:24]) == (125, 1000)


def written(library, folder):
    """The values of every kind of chart."""
    made = importlib.import_module(f"{library.__name__}.utils.tensorboard").SummaryWriter(folder)
    labels, scores = library.tensor([1, 0, 1, 1]), library.tensor([0.9, 0.8, 0.3, 1.0])
    points = library.arange(12.0).reshape(1, 4, 3)
    faces = library.tensor([[[0, 1, 2]]])
    with made as writer:
        writer.add_pr_curve("curve", labels, scores, 1, num_thresholds=11)
        writer.add_pr_curve("weighed", labels, scores, 1, 200, weights=np.array([1, 2, 3, 4]))
        writer.add_pr_curve_raw("raw", *np.arange(12.0).reshape(6, 2), num_thresholds=2)
        writer.add_mesh("mesh", points, points, faces, {"camera": {"fov": 75}}, 2)
        writer.add_custom_scalars(
            {"a": {"b": ["Margin", ["x", "y", "z"]], "c": ["Multiline", ["x"]]}}
        )
    found = read(folder)
    tags = found.Tags()["tensors"]
    assert len(tags) == 7
    return {
        tag: (found.Tensors(tag)[0].tensor_proto, found.SummaryMetadata(tag).plugin_data)
        for tag in tags
    }


def test_charts_are_pytorchs(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    ours, theirs = written(weft, tmp_path / "ours"), written(torch, tmp_path / "theirs")
    assert ours == theirs


def test_charts_refuse(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(ValueError, match="add_pr_curve: expected a label for each of 3"):
            writer.add_pr_curve("a", weft.ones(2), weft.ones(3))
        with pytest.raises(ValueError, match="add_mesh: expected the shape"):
            writer.add_mesh("a", weft.ones(4, 3))
        with pytest.raises(AssertionError, match="expected the tags of a value and two bounds"):
            writer.add_custom_scalars_marginchart(["a", "b"])


def test_graphs(tmp_path):
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, weft.ones(1, 2))
    graph = GraphDef.FromString(read(tmp_path).Graph().SerializeToString())
    nodes = {node.name: node for node in graph.node}
    (linear,) = (node for node in graph.node if node.op == "aten::linear")
    assert set(linear.input) <= set(nodes) and any(n.endswith("/0/weight") for n in linear.input)
    assert "output/output.1" in nodes


def test_hyperparameters(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        values = {"lr": 0.1, "layers": 3, "bias": True, "name": "net"}
        writer.add_hparams(values, {"accuracy": 0.5}, {"layers": [1, 3]}, run_name="run")
        with pytest.raises(ValueError, match=r"add_hparams: expected numbers.*got list for 'x'"):
            writer.add_hparams({"x": []}, {})
        with pytest.raises(TypeError, match="expected two dicts, got list and dict"):
            writer.add_hparams([], {})
    found = read(tmp_path / "run")
    assert found.Scalars("accuracy")[0].value == 0.5
    held = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    start = plugin_data_pb2.HParamsPluginData.FromString(held).session_start_info
    assert start.hparams["lr"].number_value == 0.1 and start.hparams["name"].string_value == "net"


def test_embeddings(tmp_path):
    points = weft.arange(6.0).reshape(3, 2)
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(points, ["a", "b", "c"], weft.rand(3, 3, 4, 4), 1, "first")
        writer.add_embedding(points, [[1, 2]] * 3, tag="second", metadata_header=["x", "y"])
        writer.add_embedding(points, global_step=1, tag="first")
        with pytest.raises(ValueError, match="add_embedding: expected 3 labels, got 1"):
            writer.add_embedding(points, ["a"])
    from google.protobuf import text_format

    text = (tmp_path / "projector_config.pbtxt").read_text()
    config = text_format.Parse(text, ProjectorConfig())
    assert [e.tensor_name for e in config.embeddings] == ["second:00000", "first:00001"]
    table = np.loadtxt(tmp_path / config.embeddings[1].tensor_path)
    assert (table == points.numpy()).all()
    assert (tmp_path / config.embeddings[0].metadata_path).read_text().startswith("x\ty\n1\t2\n")


def test_folders_and_purging(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(comment="_note")
    writer.add_scalar("a", 1, 1)
    writer.close()
    assert writer.log_dir.startswith("runs") and writer.log_dir.endswith("_note")
    writer.add_scalar("a", 2, 2)  # after close() a new file is written
    writer.add_scalar("a", 3, 3)
    writer.flush()
    writer.close()
    with SummaryWriter(writer.log_dir, purge_step=3) as again:
        again.add_scalar("a", 4, 3)
    assert [event.value for event in read(writer.get_logdir()).Scalars("a")] == [1, 2, 4]
