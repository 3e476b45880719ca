"""im2col of a 5x5 image under a 3x3 kernel of stride 2: four patches become four columns."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from convcore import engine

COLORS = ("tab:blue", "tab:orange", "tab:green", "tab:red")

image = np.arange(25.0).reshape(1, 1, 5, 5)
columns = engine.im2col(image, 3, stride=2)[0]

figure, axes = plt.subplots(
    1, 6, figsize=(9, 4.2), width_ratios=[5, 3, 3, 3, 3, 5], layout="constrained"
)


def numbers(ax, table, title, fill=lambda row, column: "white"):
    """Draw a table of numbers, each in a cell of its own colour."""
    for (row, column), value in np.ndenumerate(table):
        color = fill(row, column)
        ax.add_patch(Rectangle((column, row), 1, 1, fc=color, ec="gray", alpha=0.45))
        ax.text(column + 0.5, row + 0.5, f"{value:.0f}", ha="center", va="center")
    ax.set(xlim=(0, table.shape[1]), ylim=(table.shape[0], 0), aspect="equal", title=title)
    ax.set_axis_off()


numbers(axes[0], image[0, 0], "image")
for patch, color in enumerate(COLORS):
    row, column = divmod(patch, 2)
    shift = 0.06 * patch
    corner = (2 * column + shift, 2 * row + shift)
    axes[0].add_patch(Rectangle(corner, 2.8, 2.8, fill=False, ec=color, lw=2.5))
    part = image[0, 0, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3]
    numbers(axes[patch + 1], part, f"place {patch}", lambda row, column, color=color: color)
numbers(axes[5], columns, "columns", lambda row, column: COLORS[column])
axes[5].set_title("columns:\n9 taps, 4 places")
plt.show()
