"""im2col block by block: one part of the columns exists at a time, in the cache."""

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

figure, ax = plt.subplots(figsize=(8.5, 3.3), layout="constrained")
for block in range(8):
    now = block == 2
    for part in range(2):
        here = now and part == 1
        style = {"fc": "tab:blue" if here else "white", "ec": "gray", "alpha": 0.6 if here else 1}
        ax.add_patch(Rectangle((block, 2 + 1.5 * (1 - part)), 1, 1.5, **style))
    color = "tab:green" if block < 2 else "tab:olive" if now else "white"
    ax.add_patch(Rectangle((block, 0), 1, 1.2, fc=color, ec="gray", alpha=0.6))
for part in range(2):
    color = "tab:orange" if part == 1 else "white"
    ax.add_patch(Rectangle((-3.2 + 1.1 * part, 0), 1, 1.2, fc=color, ec="gray", alpha=0.6))
ax.text(-2.15, 1.35, "weights, in parts of K", ha="center")
ax.text(4, 5.15, "columns: K rows, P places. Only the blue part exists, in the cache", ha="center")
ax.text(4, 1.35, "output: finished (green), being summed (olive)", ha="center")
ax.text(-0.55, 0.6, "...", ha="center", va="center", size=14)
ax.set(xlim=(-3.4, 8.1), ylim=(-0.1, 5.5))
ax.set_axis_off()
plt.show()
