"""Photographs as inputs of nets: read, turned upright, resized, and scaled."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from convcore.cli.errors import UsageError, count, require_extra

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
# Channels of a picture that are known: grey values, or red, green and blue.
_MODES = {1: "L", 3: "RGB"}


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
    from PIL import Image, ImageOps

    last = _channels_are_last(axes)
    channels, height, width = axes[3 if last else 1], *(axes[1:3] if last else axes[2:])
    try:
        with Image.open(file) as opened:
            shown = ImageOps.exif_transpose(opened).convert(_MODES[int(channels)])
    except FileNotFoundError:
        raise UsageError(f"{file}: No such file or directory") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise UsageError(f"{file}: this is no picture that Pillow can read: {error}") from None
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


def _channels_are_last(axes: list[int | str]) -> bool:
    if len(axes) == 4 and axes[1] in _MODES:
        return False
    if len(axes) == 4 and axes[3] in _MODES:
        return True
    raise UsageError(
        f"a picture is for an input (N, C, H, W) or (N, H, W, C) with 1 or 3 channels, not "
        f"[{', '.join(map(str, axes))}]; give an array, as --input x.npy"
    )
