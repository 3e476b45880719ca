"""One 2x3 image of three channels, and the order of its elements in memory in both formats."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

COLORS = ("tab:red", "tab:green", "tab:blue")
C, H, W = 3, 2, 3


def cell(ax, x, y, channel, row, column):
    """Draw an element: its colour is the channel, its text the row and column."""
    ax.add_patch(Rectangle((x, y), 1, 1, fc=COLORS[channel], ec="black", alpha=0.45))
    ax.text(x + 0.5, y + 0.5, f"{row},{column}", ha="center", va="center", size=9)


figure, ax = plt.subplots(figsize=(9, 4), layout="constrained")
for channel, row, column in np.ndindex(C, H, W):
    cell(ax, column + 5 * channel + 3, row, channel, row, column)
    in_planes = (channel * H + row) * W + column
    cell(ax, in_planes, 4, channel, row, column)
    in_pixels = (row * W + column) * C + channel
    cell(ax, in_pixels, 7, channel, row, column)
ax.text(0, 0.9, "the image:\nrow, column", va="center")
ax.text(0, 3.7, "NCHW, contiguous: one channel after the other")
ax.text(0, 6.7, "NHWC, channels_last: one pixel after the other, with all its channels")
ax.set(xlim=(-0.2, 18.2), ylim=(8.3, -0.4), aspect="equal")
ax.set_axis_off()
plt.show()
