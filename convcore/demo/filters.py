"""Gabor and Sobel filters as convolution weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

SIZE = 15
# Of a Gabor filter's wave and Gaussian, in pixels; the Gaussian is longer across the wave.
_WAVELENGTH, _SIGMA, _ASPECT = 6.0, 2.6, 0.6
# ITU-R BT.601: the weights of red, green and blue in a grey value.
_LUMA = np.array([0.299, 0.587, 0.114])


@dataclass(frozen=True)
class Bank:
    """A filter bank: titles, and a weight (n_filters, 3, SIZE, SIZE), float32."""

    titles: tuple[str, ...]
    weight: np.ndarray


def gabor(angle: float) -> np.ndarray:
    """Return an odd Gabor filter: a sine wave under a Gaussian.

    exp(-(u^2 + aspect^2 v^2) / (2 sigma^2)) * sin(2 pi u / wavelength), where u runs along
    ``angle`` and v across it.  It is odd, so it sums to 0, and its response to constant input is 0.

    Parameters
    ----------
    angle : float
        Direction of the wave in degrees, counter-clockwise from the x axis.

    Returns
    -------
    (SIZE, SIZE), float64, of Euclidean length 1

    References
    ----------
    Daugman 1985, "Uncertainty relation for resolution in space, spatial frequency, and orientation
    optimized by two-dimensional visual cortical filters", J. Opt. Soc. Am. A 2(7), 1160-1169.
    """
    half = SIZE // 2
    y, x = np.mgrid[half : -half - 1 : -1, -half : half + 1]
    turn = math.radians(angle)
    u = x * math.cos(turn) + y * math.sin(turn)
    v = y * math.cos(turn) - x * math.sin(turn)
    envelope = np.exp(-(u**2 + (_ASPECT * v) ** 2) / (2 * _SIGMA**2))
    wave = envelope * np.sin(2 * math.pi * u / _WAVELENGTH)
    return wave / np.linalg.norm(wave)


def sobel(vertical: bool) -> np.ndarray:
    """Return the Sobel filter along x, or upwards along y, zero-padded to (SIZE, SIZE).

    Its Euclidean length is 1.

    References
    ----------
    Sobel & Feldman 1968, "A 3x3 isotropic gradient operator for image processing".
    """
    along_x = np.outer([1, 2, 1], [-1, 0, 1])
    small = -along_x.T if vertical else along_x
    return np.pad(small / np.linalg.norm(small), (SIZE - 3) // 2)


def make_bank() -> Bank:
    """Return four Gabor and two Sobel filters, each of the photograph's grey value.

    A grey value is a weighted sum of the three colours, so:
    weight[o, c] = luma[c] * filter[o].
    """
    angles = (0, 45, 90, 135)
    filters = [*(gabor(angle) for angle in angles), sobel(vertical=False), sobel(vertical=True)]
    titles = (*(f"Gabor, {angle}°" for angle in angles), "Sobel, along x", "Sobel, along y")
    weight = _LUMA[None, :, None, None] * np.stack(filters)[:, None]
    return Bank(titles, weight.astype(np.float32))
