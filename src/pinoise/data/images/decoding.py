"""Image files: whether one is sound, its size, colour and pixels; many as an array that decodes what is indexed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from pinoise.data.dataset import in_threads
from pinoise.data.lazy import LazyArray, MappedRows
from pinoise.errors import UserError, cannot_read, first_line
from pinoise.files import open_regular, sha256_of

IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm")

# Pillow knows more formats, and some of its readers start other programs.
_FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM")

_GRAY = ("1", "L", "LA", "La", "I")
_COLOUR = ("PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")

_ORIENTATION = 0x0112  # EXIF
_TURNED = ("FLIP_LEFT_RIGHT", "ROTATE_180", "FLIP_TOP_BOTTOM", "TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90")
_TURNS = dict(enumerate(_TURNED, start=2))

_DRAFT = 3  # an image is first decoded at no less than this many times its final size, which is hardly visible


@dataclass(frozen=True)
class Inspection:
    """What a file holds; ``problem`` says why it cannot be decoded."""

    size: tuple[int, int] = (0, 0)  # height, width
    colour: bool = False
    problem: str | None = None


def pillow() -> ModuleType:
    """Return Pillow's ``Image`` module, or say how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise UserError("image files are decoded by Pillow: install it with pip install 'pinoise[vision]'.") from error
    return Image


def inspect_image(path: Path) -> Inspection:
    """Decode a file once, as coarsely as its format allows, and return what was found."""
    library = pillow()
    try:
        with open_regular(path) as stream, library.open(stream, formats=_FORMATS) as image:
            size = image.size
            image.draft(None, (1, 1))  # of a JPEG file, only every eighth pixel
            image.load()
            if image.format != "JPEG":  # Pillow turns a TIFF file as it loads it
                size = image.size
            return Inspection(size if _orientation(image) >= 5 else size[::-1], _has_colour(image))
    except Exception as error:  # Pillow's readers raise errors of every kind for damaged files
        return Inspection(problem=_problem(error))


def decode(path: Path, *, shape: tuple[int, ...], resize: bool) -> npt.NDArray[np.uint8]:
    """Return the pixels of a file in the given shape, (height, width) for gray and (height, width, 3) for colour.

    With ``resize`` the image is scaled until its shorter side fits, and cropped about its centre; without it, another
    size is an error.
    """
    library = pillow()
    height, width = shape[:2]
    try:
        with open_regular(path) as stream, library.open(stream, formats=_FORMATS) as file:
            if resize and file.format == "JPEG":  # decoded several times as fast at a half, a quarter or an eighth
                sides = (height, width) if _orientation(file) >= 5 else (width, height)
                file.draft(None, (_DRAFT * sides[0], _DRAFT * sides[1]))
            file.load()
            turn = _TURNS.get(_orientation(file))
            image = _eight_bits(file, library).convert("L" if len(shape) == 2 else "RGB")
        if turn is not None:
            image = image.transpose(library.Transpose[turn])
        if resize and image.size != (width, height):
            image = fitted(image, (height, width))
    except Exception as error:
        raise UserError(f"{path} cannot be decoded ({_problem(error)}): repair or remove it.") from error
    if image.size != (width, height):
        raise UserError(f"{path} is {describe(image.size[::-1])} pixels: the others are {describe((height, width))}.")
    return np.asarray(image, dtype=np.uint8)


def fitted(image: Any, size: tuple[int, int]) -> Any:
    """Return an image of Pillow's scaled until its shorter side fits height and width, cropped about its centre."""
    from PIL import Image, ImageOps

    return ImageOps.fit(image, size[::-1], Image.Resampling.BILINEAR)


def describe(size: tuple[int, int]) -> str:
    """Return height and width as text.

    >>> describe((32, 48))
    '32 × 48'
    """
    return f"{size[0]} × {size[1]}"


class ImageFiles(LazyArray):
    """A read-only array uint8 of shape (n, height, width) or (n, height, width, 3) whose rows are files.

    Indexing decodes, in threads, and gives an ordinary array; ``take`` chooses files and decodes nothing. Objects are
    small and can be pickled.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(3):
    ...         Image.new("L", (5, 4), color=number).save(Path(folder, f"{number}.png"))
    ...     images = ImageFiles(Path(folder), ["0.png", "1.png", "2.png"], shape=(4, 5))
    ...     images.shape, images[np.array([2, 0])].shape, images.take(np.array([2, 0]))[0].max()
    ((3, 4, 5), (2, 4, 5), np.uint8(2))
    """

    def __init__(self, folder: Path, names: Sequence[str], *, shape: tuple[int, ...], resize: bool = False) -> None:
        """Describe the array.

        Args:
            folder: where the files are.
            names: their paths in the folder, in the order of the rows.
            shape: of one image: height and width, and 3 if it has colour.
            resize: whether files of another size are scaled and cropped, or an error.
        """
        super().__init__((len(names), *shape), np.uint8)
        self.folder, self.resize, self._files = folder, resize, tuple(names)

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of the files in the folder, in the order of the rows."""
        return tuple(self._files[row] for row in self._stored(np.arange(len(self))).tolist())

    def file_checksums(self) -> Iterator[bytes]:
        """Yield the SHA-256 of every file, in threads; nothing is decoded."""
        return in_threads(_checksum, [self.folder / name for name in self.names])

    def _read(self, numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.uint8]:
        read = partial(decode, shape=self._sample_shape, resize=self.resize)
        paths = [self.folder / self._files[row] for row in numbers.tolist()]
        return np.array(list(in_threads(read, paths)), np.uint8).reshape(-1, *self._sample_shape)


def resized_images(images: npt.NDArray[Any] | LazyArray, size: tuple[int, int]) -> MappedRows:
    """Return images (n, h, w) or (n, h, w, c) of bytes, which are brought to height and width when they are indexed.

    >>> images = resized_images(np.zeros((2, 9, 6, 3), dtype=np.uint8), (4, 4))
    >>> images.shape, images[0].shape, images.take(np.array([1])).shape
    ((2, 4, 4, 3), (4, 4, 3), (1, 4, 4, 3))
    """
    return MappedRows(images, partial(_resized, size=size), sample_shape=(*size, *images.shape[3:]))


def _resized(images: npt.NDArray[Any], *, size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    def resize(pixels: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        image = library.fromarray(np.ascontiguousarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels))
        return np.asarray(fitted(image, size))

    library = pillow()
    return np.array(list(in_threads(resize, list(images))), np.uint8).reshape(-1, *size, *images.shape[3:])


def _checksum(path: Path) -> bytes:
    try:
        return bytes.fromhex(sha256_of(path))
    except OSError as error:
        raise cannot_read(path, error) from error


def _orientation(image: Any) -> int:
    """Return how a photograph is turned. The image must be loaded, or a JPEG file: the metadata of other formats may
    lie behind the pixels, and reading it then would decode them and hide their damage."""
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # a photograph with damaged metadata is still a photograph
        return 1


def _has_colour(image: Any) -> bool:
    if image.mode == "P":
        palette = np.array(image.getpalette("RGB")).reshape(-1, 3)
        return bool((palette != palette[:, :1]).any())
    if image.mode not in (*_GRAY, *_COLOUR) and not image.mode.startswith("I;16"):
        raise ValueError(f"pixels are of mode {image.mode}")
    return image.mode in _COLOUR


def _eight_bits(image: Any, library: ModuleType) -> Any:
    """Return an image whose channels have 8 bits; of 16 bits the upper ones are kept."""
    if image.mode != "I" and not image.mode.startswith("I;16"):
        return image
    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 0xFFFF:
        raise ValueError("pixels have more than 16 bits")
    return library.fromarray((values >> 8).astype(np.uint8))


def _problem(error: Exception) -> str:
    from PIL import UnidentifiedImageError

    if isinstance(error, MemoryError):  # says nothing about the file
        raise error
    if isinstance(error, UnidentifiedImageError):  # its own text is mostly the path
        return "it is not an image of a known format"
    return getattr(error, "strerror", None) or first_line(error)  # of the system, or of Pillow
