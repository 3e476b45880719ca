"""F(4x4, 3x3): 6x6 tiles of the input, each making 4x4 outputs; neighbours overlap by two."""

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

COLORS = ("tab:blue", "tab:orange", "tab:green", "tab:red")

figure, (left, right) = plt.subplots(
    1, 2, figsize=(7.5, 3.9), width_ratios=[10, 8], layout="constrained"
)
for ax, size, edge, title in (
    (left, 10, 6, "input: tiles of 6 x 6"),
    (right, 8, 4, "output: 4 x 4 each, and no overlap"),
):
    for line in range(size + 1):
        ax.plot([line, line], [0, size], color="lightgray", lw=0.7)
        ax.plot([0, size], [line, line], color="lightgray", lw=0.7)
    for tile, color in enumerate(COLORS):
        row, column = divmod(tile, 2)
        inset = 0.08 * tile
        corner = (4 * column + inset, 4 * row + inset)
        side = edge - 0.3
        ax.add_patch(Rectangle(corner, side, side, fc=color, ec=color, alpha=0.25))
        ax.add_patch(Rectangle(corner, side, side, fill=False, ec=color, lw=2))
    ax.set(xlim=(-0.1, size + 0.1), ylim=(size + 0.1, -0.1), aspect="equal", title=title)
    ax.set_axis_off()
plt.show()
