"""torchvision's operators on images in files (`torch.ops.image`), through Pillow.

Images are uint8 tensors [channels, height, width], files are uint8 tensors of one dimension. Modes
are the numbers of torchvision's ImageReadMode. Damaged files raise RuntimeError. Of PNG files with
16 bits a channel, those of one channel are read whole (uint16), others are cut to 8.
"""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image, ImageOps, ImageSequence

from weft import _C
from weft._C import Tensor
from weft.library._custom import custom_op

_UNCHANGED = 0
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")


def _opened(op: str, data: Tensor, formats: tuple[str, ...]) -> Image.Image:
    if data.dtype != _C.uint8 or data.dim() != 1 or data.numel() == 0:
        raise RuntimeError(
            f"{op}: expected the bytes of a file, uint8 of one dimension, got {data.dtype} "
            f"{list(data.shape)}"
        )
    try:
        return Image.open(io.BytesIO(bytes(data.contiguous().numpy())), formats=formats)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise RuntimeError(f"{op}: expected {' or '.join(formats)}, got {error}") from error


def _pixels(image: Image.Image) -> Tensor:
    """[channels, height, width]; uint16 where the image has so many bits."""
    dtype = _C.uint16 if image.mode.startswith("I;16") else _C.uint8
    bands = len(image.getbands())
    flat = _C.frombuffer(bytearray(image.tobytes()), dtype=dtype)
    return flat.reshape(image.height, image.width, bands).permute(2, 0, 1).contiguous()


def _gray(pixels: Tensor) -> Tensor:
    """Brightness and opacity of RGBA, by the weights that torchvision gives libpng (0.2989, 0.587)
    in its arithmetic of 15 bits, rounded down."""
    red, green, blue = pixels[:3].to(_C.int32).unbind(0)
    gray = (9794 * red + 19235 * green + 3739 * blue) >> 15
    return _C.stack([gray.to(_C.uint8), pixels[3]])


def _decoded(
    op: str, data: Tensor, mode: int, formats: tuple[str, ...], exif: bool = False
) -> Tensor:
    if mode != _UNCHANGED and mode not in _MODES:
        raise RuntimeError(f"{op}: expected a mode from 0 to 4, got {mode}")
    image = _opened(op, data, formats)
    try:
        if mode == 1 and image.format == "JPEG":
            image.draft("L", image.size)  # the brightness that the file has
        if exif:
            image = ImageOps.exif_transpose(image)
        if mode in (1, 2) and image.format == "PNG" and image.mode in ("RGB", "RGBA", "P"):
            return _gray(_pixels(image.convert("RGBA")))[: 1 if mode == 1 else 2]
        if mode != _UNCHANGED:
            image = image.convert(_MODES[mode])
        elif image.mode not in ("P", "L", "LA", "RGB", "RGBA", "I;16", "I;16B", "CMYK"):
            image = image.convert("RGB" if len(image.getbands()) > 2 else "L")
        return _pixels(image)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise RuntimeError(f"{op}: expected a whole image, got {error}") from error


def _encoded(op: str, data: Tensor, format: str, **options: int) -> Tensor:
    if data.dtype != _C.uint8 or data.dim() != 3 or data.size(0) not in (1, 3):
        raise RuntimeError(
            f"{op}: expected uint8 [1 or 3, height, width], got {data.dtype} {list(data.shape)}"
        )
    mode = "L" if data.size(0) == 1 else "RGB"
    pixels = bytes(data.permute(1, 2, 0).contiguous().numpy())
    image = Image.frombytes(mode, (data.size(2), data.size(1)), pixels)
    written = io.BytesIO()
    image.save(written, format, **options)
    return _C.frombuffer(bytearray(written.getvalue()), dtype=_C.uint8)


@custom_op("image::read_file", mutates_args=())
def read_file(path: str) -> Tensor:
    return _C.frombuffer(bytearray(Path(path).read_bytes()), dtype=_C.uint8)


@custom_op("image::write_file", mutates_args=())
def write_file(filename: str, data: Tensor) -> None:
    if data.dtype != _C.uint8 or data.dim() != 1:
        raise RuntimeError(
            f"write_file: expected uint8 of one dimension, got {data.dtype} {list(data.shape)}"
        )
    Path(filename).write_bytes(bytes(data.contiguous().numpy()))


@custom_op("image::decode_png", mutates_args=())
def decode_png(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    return _decoded("decode_png", data, mode, ("PNG",), apply_exif_orientation)


@custom_op("image::decode_jpeg", mutates_args=())
def decode_jpeg(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    return _decoded("decode_jpeg", data, mode, ("JPEG",), apply_exif_orientation)


@custom_op("image::decode_webp", mutates_args=())
def decode_webp(data: Tensor, mode: int) -> Tensor:
    return _decoded("decode_webp", data, mode, ("WEBP",))


@custom_op("image::decode_gif", mutates_args=())
def decode_gif(data: Tensor) -> Tensor:
    """[frames, 3, height, width]; [3, height, width] of one frame."""
    image = _opened("decode_gif", data, ("GIF",))
    try:
        frames = [_pixels(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)]
    except (OSError, ValueError, SyntaxError) as error:
        raise RuntimeError(f"decode_gif: expected a whole image, got {error}") from error
    return frames[0] if len(frames) == 1 else _C.stack(frames)


@custom_op("image::decode_image", mutates_args=())
def decode_image(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    if _opened("decode_image", data, _FORMATS).format == "GIF":
        return decode_gif(data)
    return _decoded("decode_image", data, mode, _FORMATS, apply_exif_orientation)


@custom_op("image::encode_png", mutates_args=())
def encode_png(data: Tensor, compression_level: int) -> Tensor:
    if not 0 <= compression_level <= 9:
        raise RuntimeError(f"encode_png: expected a level from 0 to 9, got {compression_level}")
    return _encoded("encode_png", data, "PNG", compress_level=compression_level)


@custom_op("image::encode_jpeg", mutates_args=())
def encode_jpeg(data: Tensor, quality: int) -> Tensor:
    return _encoded("encode_jpeg", data, "JPEG", quality=quality)
