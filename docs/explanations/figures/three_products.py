"""The three passes of a convolution as three products of matrices, drawn to one scale."""

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

COLORS = {"weights": "tab:orange", "columns": "tab:blue", "output": "tab:green"}
# Sides in the drawing: output channels, taps times input channels, places.
N_O, N_K, N_P = 1.2, 2.0, 4.2


def matrix(ax, x, rows, columns, kind, name, sizes):
    """Draw a matrix from x on, centred, and its name and sizes; return where it ends."""
    ax.add_patch(Rectangle((x, -rows / 2), columns, rows, fc=COLORS[kind], ec="black", alpha=0.5))
    ax.text(x + columns / 2, 0, name, ha="center", va="center", size=10)
    ax.text(x + columns / 2, -rows / 2 - 0.35, sizes, ha="center", va="top", size=9, color="gray")
    return x + columns


figure, axes = plt.subplots(3, 1, figsize=(8.5, 7.6), height_ratios=[3, 3, 5], layout="constrained")
passes = (
    ("forward: multiply what im2col gives",
     (N_O, N_K, "weights", "$W$", "O x K"), (N_K, N_P, "columns", "im2col(x)", "K x P"),
     (N_O, N_P, "output", "y", "O x P"), ""),
    ("input gradient: multiply, then col2im",
     (N_K, N_O, "weights", "$W^T$", "K x O"), (N_O, N_P, "output", "gy", "O x P"),
     (N_K, N_P, "columns", "columns of gx", "K x P"), "then col2im:\ngx"),
    ("weight gradient: multiply what im2col gives",
     (N_O, N_P, "output", "gy", "O x P"), (N_P, N_K, "columns", "im2col(x)$^T$", "P x K"),
     (N_O, N_K, "weights", "gW", "O x K"), ""),
)  # fmt: skip
for ax, (title, left, right, result, note) in zip(axes, passes, strict=True):
    end = matrix(ax, 0, *left)
    ax.text(end + 0.45, 0, "@", ha="center", va="center", size=14)
    end = matrix(ax, end + 0.9, *right)
    ax.text(end + 0.45, 0, "=", ha="center", va="center", size=14)
    end = matrix(ax, end + 0.9, *result)
    ax.text(end + 0.4, 0, note, va="center")
    half = max(left[0], right[0], result[0]) / 2
    ax.set(xlim=(-0.1, 13.2), ylim=(-half - 0.9, half + 0.2), aspect="equal")
    ax.set_title(title, loc="left", fontsize=11)
    ax.set_axis_off()
plt.show()
