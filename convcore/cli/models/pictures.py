"""Photographs as inputs of nets: read, turned upright, resized, and scaled."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from convcore.cli.errors import UsageError, count, require_extra

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
# Channels of a picture that are known: grey values, or red, green and blue.
_MODES = {1: "L", 3: "RGB"}


def add_options(parser: argparse.ArgumentParser, of: str) -> None:
    """Add the options that say how photographs become a net's input; ``of`` begins their help."""
    parser.add_argument(
        "--mean", type=_numbers, metavar="R,G,B",
        help=f"{of}: subtracted from its values, which are from 0 to 1",
    )  # fmt: skip
    parser.add_argument(
        "--std", type=_positive, metavar="R,G,B", help=f"{of}: what its values are divided by then"
    )
    parser.add_argument(
        "--imagenet", action="store_true",
        help=f"{of}: --mean and --std of nets that were trained on ImageNet",
    )  # fmt: skip
    parser.add_argument(
        "--largest", type=_one_positive, metavar="N",
        help=f"{of}: its brightest value, for nets that take 0 to 255",
    )  # fmt: skip
    parser.add_argument(
        "--size", type=height_and_width, metavar="H,W",
        help=f"{of}, where the net leaves height and width free; its own by default",
    )  # fmt: skip


def scale_of(arguments: argparse.Namespace) -> tuple[list[float], list[float], float]:
    """Return the mean and the standard deviation of each channel, and the largest pixel value."""
    largest = arguments.largest or 1.0
    if not arguments.imagenet:
        return arguments.mean or [0.0], arguments.std or [1.0], largest
    if arguments.mean or arguments.std:
        raise UsageError("--imagenet sets --mean and --std: give it, or those")
    return *imagenet_units(), largest


def read_picture(
    file: Path,
    axes: list[int | str],
    size: tuple[int, int] | None,
    mean: list[float],
    std: list[float],
    largest: float,
    extra: str = "onnx",
) -> tuple[np.ndarray, str]:
    """Return a photograph as a net's input, float32, and a sentence on what was done to it.

    Parameters
    ----------
    file : Path
    axes : list of int or str
        The input's sizes, a name where one is free: (N, C, H, W) or (N, H, W, C), C 1 or 3.
        A free N is 1.
    size : (int, int), optional
        What a free height and width become; the photograph's by default.
    mean, std : list of float
        Of one number, or one a channel: subtracted from the values, and what they are divided by.
    largest : float
        What the brightest value becomes, before that: 1, or 255.
    extra : str
        The extra that has what reads it.

    Raises
    ------
    UsageError
        The file cannot be read, or the input is no picture.
    """
    require_extra(extra, "PIL")
    from PIL import Image

    last = _channels_are_last(axes)
    channels, height, width = axes[3 if last else 1], *(axes[1:3] if last else axes[2:])
    shown = _opened(file, _MODES[int(channels)])
    before = shown.size
    free = before if size is None else size[::-1]
    sizes = tuple(
        own if isinstance(wanted, str) else wanted
        for own, wanted in zip(free, (width, height), strict=True)
    )
    if size is not None and sizes != free:
        raise UsageError(f"--size: the net takes pictures of {height} x {width} (height, width)")
    if sizes != before:
        shown = shown.resize(sizes, Image.Resampling.BILINEAR)
    pixels = np.asarray(shown, np.float32).reshape(sizes[1], sizes[0], -1) * (largest / 255)
    for name, numbers in (("--mean", mean), ("--std", std)):
        if len(numbers) not in (1, pixels.shape[2]):
            raise UsageError(f"{name} has {len(numbers)} numbers for {pixels.shape[2]} channels")
    pixels = (pixels - np.float32(mean)) / np.float32(std)
    array = pixels if last else pixels.transpose(2, 0, 1)
    copies = axes[0] if isinstance(axes[0], int) else 1
    resized = "" if sizes == before else f"resized to {sizes[0]} x {sizes[1]}, "
    said = (
        f"{file}: {before[0]} x {before[1]} pixels, {resized}{'RGB' if channels == 3 else 'grey'}, "
        f"values from {pixels.min():.3g} to {pixels.max():.3g}"
    )
    return np.stack([array] * copies), said


def require_picture(file: Path) -> None:
    """Raise a `UsageError` unless a file begins as a picture does."""
    _opened(file)


def _opened(file: Path, mode: str | None = None) -> Any:
    """Return a picture in a mode, upright; without a mode, only see that it can be opened."""
    from PIL import Image, ImageOps

    try:
        with Image.open(file) as opened:
            return None if mode is None else ImageOps.exif_transpose(opened).convert(mode)
    except FileNotFoundError:
        raise UsageError(f"{file}: No such file or directory") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise UsageError(f"{file}: this is no picture that Pillow can read: {error}") from None


def imagenet_units() -> tuple[list[float], list[float]]:
    """Return what nets that were trained on ImageNet have as ``mean`` and ``std``."""
    from convcore.demo.maps import MEAN, STD

    return MEAN.tolist(), STD.tolist()


def resize_hint(file: Path, axes: Sequence[Any], size: tuple[int, int] | None) -> str:
    """Say how a photograph gets a size that the net takes, where the input's axes leave it free."""
    is_free = any(isinstance(axis, str) for axis in axes)
    if size is not None or not is_free or file.suffix.lower() not in SUFFIXES:
        return ""
    return " (a photograph is resized by --size H,W)"


def height_and_width(text: str) -> tuple[int, int]:
    """Parse a height and a width."""
    parts = text.split(",")
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"must be a height and a width as 224,224, got {text!r}")
    return count(parts[0]), count(parts[1])


def _numbers(text: str) -> list[float]:
    """Parse finite numbers with commas between them."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(map(isfinite, numbers)):
        raise argparse.ArgumentTypeError(f"must be numbers as 0.5,0.5,0.5, got {text!r}")
    return numbers


def _positive(text: str) -> list[float]:
    """Parse numbers above 0 with commas between them."""
    numbers = _numbers(text)
    if min(numbers) <= 0:
        raise argparse.ArgumentTypeError(f"must be above 0, got {text!r}")
    return numbers


def _one_positive(text: str) -> float:
    """Parse one number above 0."""
    numbers = _positive(text)
    if len(numbers) > 1:
        raise argparse.ArgumentTypeError(f"must be one number, got {text!r}")
    return numbers[0]


def _channels_are_last(axes: list[int | str]) -> bool:
    if len(axes) == 4 and axes[1] in _MODES:
        return False
    if len(axes) == 4 and axes[3] in _MODES:
        return True
    raise UsageError(
        f"a picture is for an input (N, C, H, W) or (N, H, W, C) with 1 or 3 channels, not "
        f"[{', '.join(map(str, axes))}]; give an array, as --input x.npy"
    )
