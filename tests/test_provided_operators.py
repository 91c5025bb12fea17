"""torchvision's operators by weft.ops.load_library: against direct loops, and images by Pillow."""

from __future__ import annotations

import io
import math
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import jit

ROIS = np.array(
    [[0, 1, 1, 6, 5], [1, -3, -2, 9, 12], [1, 2, 2, 2, 2], [0, 4, 3, 4.6, 3.2], [0, 20, 20, 30, 30]]
)
SCALE, HIGH, WIDE = 0.75, 3, 2


@pytest.fixture(scope="module")
def vision() -> Any:
    weft.ops.load_library("site-packages/torchvision/_C.so")
    weft.ops.load_library("site-packages/torchvision/_C.so")  # once more
    return weft.ops.torchvision


def test_other_libraries_are_loaded() -> None:
    with pytest.raises(OSError):
        weft.ops.load_library("site-packages/torchaudio/_C.so")


def test_programs_of_archives_are_kept_on_disk_beside_them() -> None:
    """A program's own operators keep archives from that, those of the libraries do not."""
    text = """
        import weft
        from weft.jit.archive.registry import has_operators_of_users
        for library in ("torchvision/_C.so", "torchaudio/lib/libtorchaudio.so"):
            weft.ops.load_library(library)
        weft.ops.torchvision.nms
        print(has_operators_of_users())
        weft.library.define("mine::f", "(Tensor x) -> Tensor")
        print(has_operators_of_users())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def half_up(x: float) -> int:
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def bins(first: float, length: float, count: int, last: int) -> list[range]:
    def cut(x: int) -> int:
        return min(max(x, 0), last)

    return [
        range(
            cut(math.floor(i * length / count + first)),
            cut(math.ceil((i + 1) * length / count + first)),
        )
        for i in range(count)
    ]


def regions(extra: int, margin: int, shape: tuple[int, int]) -> Any:
    """The bins of each region, in whole points."""
    for image, *box in ROIS:
        x1, y1, x2, y2 = (half_up(side * SCALE) for side in box)
        rows = bins(y1, max(y2 - y1 + extra, 1), HIGH, shape[0] - margin)
        columns = bins(x1, max(x2 - x1 + extra, 1), WIDE, shape[1] - margin)
        yield int(image), rows, columns


def test_roi_pool(vision: Any) -> None:
    x = np.random.default_rng(1).normal(size=(2, 3, 7, 8))
    values = np.zeros((len(ROIS), 3, HIGH, WIDE))
    places = np.full(values.shape, -1)
    for k, (image, rows, columns) in enumerate(regions(1, 0, (7, 8))):
        for c, i, j in np.ndindex(3, HIGH, WIDE):
            points = [(x[image, c, a, b], a * 8 + b) for a in rows[i] for b in columns[j]]
            if points:
                values[k, c, i, j], places[k, c, i, j] = max(points)
    given = weft.from_numpy(x).requires_grad_()
    found, argmax = vision.roi_pool(given, weft.from_numpy(ROIS), SCALE, HIGH, WIDE)
    np.testing.assert_array_equal(found.detach().numpy(), values)
    np.testing.assert_array_equal(argmax.numpy(), places)
    assert argmax.dtype == weft.int32 and found.is_contiguous()
    found.sum().backward()
    counts = np.zeros_like(x)
    for k, c, i, j in np.ndindex(*places.shape):
        if places[k, c, i, j] >= 0:
            counts[int(ROIS[k, 0]), c].flat[places[k, c, i, j]] += 1
    np.testing.assert_array_equal(given.grad.numpy(), counts)
    empty = vision.roi_pool(given, weft.empty(0, 5), SCALE, HIGH, WIDE)
    assert [list(each.shape) for each in empty] == [[0, 3, HIGH, WIDE]] * 2


def test_ps_roi_pool(vision: Any) -> None:
    x = np.random.default_rng(2).normal(size=(2, 2 * HIGH * WIDE, 7, 8))
    expected = np.zeros((len(ROIS), 2, HIGH, WIDE))
    for k, (image, rows, columns) in enumerate(regions(0, 1, (7, 8))):
        for c, i, j in np.ndindex(2, HIGH, WIDE):
            plane = x[image, (c * HIGH + i) * WIDE + j]
            points = [plane[a, b] for a in rows[i] for b in columns[j]]
            expected[k, c, i, j] = sum(points) / max(len(points), 1)
    given = weft.from_numpy(x).requires_grad_()
    rois = weft.from_numpy(ROIS)
    found, mapping = vision.ps_roi_pool(given, rois, SCALE, HIGH, WIDE)
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-14)
    assert mapping[3].flatten().tolist() == list(range(2 * HIGH * WIDE))
    assert weft.autograd.gradcheck(
        lambda x: vision.ps_roi_pool(x, rois, SCALE, HIGH, WIDE)[0], [given]
    )
    with pytest.raises(ValueError, match="ps_roi_pool: expected a multiple of 6 channels, got 5"):
        vision.ps_roi_pool(weft.ones(1, 5, 3, 3), weft.zeros(1, 5), 1.0, HIGH, WIDE)


@pytest.mark.parametrize("ratio", [2, 0])
def test_ps_roi_align_takes_the_channels_of_roi_align(vision: Any, ratio: int) -> None:
    x = weft.from_numpy(np.random.default_rng(3).normal(size=(2, 2 * HIGH * WIDE, 7, 8)))
    rois = weft.from_numpy(ROIS)
    found, _ = vision.ps_roi_align(x, rois, SCALE, HIGH, WIDE, ratio)
    every = vision.roi_align(x, rois, SCALE, HIGH, WIDE, ratio, True)
    every = every.reshape(len(ROIS), 2, HIGH, WIDE, HIGH, WIDE)
    for i in range(HIGH):
        for j in range(WIDE):
            weft.testing.assert_close(found[:, :, i, j], every[:, :, i, j, i, j])


def test_images_that_are_not_there_are_refused(vision: Any) -> None:
    for image in (-1.0, 2.0):
        rois = weft.tensor([[image, 0.0, 0.0, 1.0, 1.0]])
        with pytest.raises(IndexError, match=r"roi_pool: expected an image in \[0, 2\)"):
            vision.roi_pool(weft.ones(2, 6, 3, 3), rois, 1.0, HIGH, WIDE)


@pytest.mark.parametrize("side", [math.nan, math.inf, -math.inf])
def test_regions_of_no_numbers(vision: Any, side: float) -> None:
    """What a network that diverged gives does not end the program, and others keep their values."""
    x = weft.randn(1, 2, 6, 5)
    rois = weft.tensor([[0.0, side, 1.0, 3.0, 3.0], [0.0, 1.0, 1.0, 3.0, side], [0.0, 1, 1, 3, 3]])
    found = vision.roi_align(x, rois, 1.0, 2, 2, 2, False)
    weft.testing.assert_close(found[2:], vision.roi_align(x, rois[2:], 1.0, 2, 2, 2, False))


def test_what_torchvision_registers_for_them(vision: Any) -> None:
    """Gradients are those of the operators they are made of; fakes and rules of autocast hold."""

    def never(*args: Any) -> Any:
        raise AssertionError

    weft.library.register_autograd("torchvision::roi_align", never, setup_context=never)
    x = weft.ones(1, 2, 5, 5, requires_grad=True)
    rois = weft.tensor([[0.0, 1.0, 1.0, 3.0, 3.0]])
    vision.roi_align(x, rois, 1.0, 2, 2, 2, False).sum().backward()
    assert float(x.grad.sum()) == pytest.approx(8.0)
    library = weft.library.Library("torchvision", "IMPL")
    library.impl("roi_align", lambda x, rois, *rest: x.new_empty(rois.size(0)), "Meta")
    meta = vision.roi_align(weft.ones(1, 2, 5, 5, device="meta"), rois, 1.0, 2, 2, 2, False)
    assert meta.shape == (1,)

    def in_float32(x: Any, rois: Any, *rest: Any) -> Any:
        with weft.autocast("cpu", enabled=False):
            return vision.roi_align(x.float(), rois, *rest).to(x.dtype) + 1

    library.impl("roi_align", in_float32, "AutocastCPU")
    given = (x.detach().bfloat16(), rois, 1.0, 2, 2, 2, False)
    with weft.autocast("cpu"):
        assert vision.roi_align(*given).unique().tolist() == [2.0]
    assert vision.roi_align(given[0].float(), *given[1:]).unique().tolist() == [1.0]
    with pytest.raises(NotImplementedError, match="_roi_align_backward: expected an operator"):
        vision._roi_align_backward(x)
    assert vision._cuda_version() == -1


def test_programs_compile_them(vision: Any) -> None:
    def kept(boxes: weft.Tensor, scores: weft.Tensor) -> weft.Tensor:
        return weft.ops.torchvision.nms(boxes, scores, 0.5)

    program = jit.script(kept)
    assert "CallPython" not in str(program.inlined_graph)
    boxes = weft.tensor([[0.0, 0, 2, 2], [0, 0, 2, 2.1], [5, 5, 6, 6]])
    assert program(boxes, weft.tensor([0.1, 0.9, 0.5])).tolist() == [1, 2]


# Images ------------------------------------------------------------------------------------------

IMAGE = np.random.default_rng(0).integers(0, 256, (3, 9, 14)).astype(np.uint8)
RGB, GRAY, GRAY_ALPHA, RGB_ALPHA = 3, 1, 2, 4


@pytest.fixture(scope="module")
def image() -> Any:
    pytest.importorskip("PIL")
    weft.ops.load_library("site-packages/torchvision/image.so")
    return weft.ops.image


def file_of(format: str, **options: Any) -> weft.Tensor:
    from PIL import Image

    written = io.BytesIO()
    Image.fromarray(IMAGE.transpose(1, 2, 0)).save(written, format, **options)
    return weft.tensor(list(written.getvalue()), dtype=weft.uint8)


@pytest.mark.parity
def test_files_without_loss_keep_every_pixel(image: Any, tmp_path: Path) -> None:
    pixels = weft.from_numpy(IMAGE)
    for written in (image.encode_png(pixels, 6), file_of("PNG"), file_of("WEBP", lossless=True)):
        assert weft.equal(image.decode_image(written, 0), pixels)
    image.write_file(str(tmp_path / "a.png"), image.encode_png(pixels[:1], 0))
    read = image.read_file(str(tmp_path / "a.png"))
    assert weft.equal(image.decode_png(read, 0), pixels[:1])
    assert weft.equal(image.decode_png(read, RGB), pixels[:1].expand(3, -1, -1))
    assert image.decode_png(read, RGB_ALPHA)[3].unique().tolist() == [255]


@pytest.mark.parity
def test_gray_weighs_the_channels(image: Any) -> None:
    red, green, blue = IMAGE.astype(np.float64)
    gray = 0.2989 * red + 0.587 * green + 0.1141 * blue
    for mode, channels in ((GRAY, 1), (GRAY_ALPHA, 2)):
        found = image.decode_png(file_of("PNG"), mode)
        assert found.shape[0] == channels
        assert np.abs(found[0].numpy() - gray + 0.5).max() <= 0.52  # rounded down
    jpeg = image.decode_jpeg(file_of("JPEG", quality=100), GRAY)
    assert np.abs(jpeg[0].numpy() - gray).max() < 3


@pytest.mark.parity
def test_jpeg_turned_by_its_mark(image: Any) -> None:
    from PIL import Image

    marks = Image.Exif()
    marks[0x0112] = 6  # Orientation: the first row is at the right
    data = file_of("JPEG", quality=95, exif=marks)
    plain, turned = image.decode_jpeg(data, RGB), image.decode_jpeg(data, RGB, True)
    assert weft.equal(turned, plain.flip(1).transpose(1, 2))
    again = image.decode_jpeg(image.encode_jpeg(plain[:1], 100), 0)
    assert (again.float() - plain[:1].float()).abs().max() < 4


@pytest.mark.parity
def test_gif_and_sixteen_bits(image: Any) -> None:
    from PIL import Image

    frames = [Image.new("RGB", (4, 3), color) for color in ("red", "lime", "blue")]
    written = io.BytesIO()
    frames[0].save(written, "GIF", save_all=True, append_images=frames[1:])
    found = image.decode_image(weft.tensor(list(written.getvalue()), dtype=weft.uint8), 0)
    assert found.shape == (3, 3, 3, 4)
    assert found[:, :, 0, 0].tolist() == [[255, 0, 0], [0, 255, 0], [0, 0, 255]]
    deep = np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000
    written = io.BytesIO()
    Image.fromarray(deep).save(written, "PNG")
    found = image.decode_png(weft.tensor(list(written.getvalue()), dtype=weft.uint8), 0)
    assert found.dtype == weft.uint16 and found[0].tolist() == deep.tolist()


@pytest.mark.parity
@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
def test_damaged_files_raise(image: Any, format: str) -> None:
    whole = file_of(format)
    generator = np.random.default_rng(7)
    for _ in range(60):
        damaged = whole.clone()
        for place in generator.integers(0, whole.numel(), 4):
            damaged[int(place)] = int(generator.integers(0, 256))
        damaged = damaged[: int(generator.integers(0, whole.numel() + 1))]
        try:
            assert image.decode_image(damaged, RGB).dtype == weft.uint8
        except RuntimeError as error:
            assert ": expected" in str(error)
    for wrong in (weft.zeros(5), whole.reshape(1, -1)):
        with pytest.raises(RuntimeError, match="expected the bytes of a file"):
            image.decode_image(wrong, RGB)
    with pytest.raises(RuntimeError, match="expected a mode from 0 to 4, got 9"):
        image.decode_image(file_of("PNG"), 9)
