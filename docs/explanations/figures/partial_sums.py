"""A weight gradient: chunks of pixels, a partial gradient each, added in the order of index."""

import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, Rectangle

figure, ax = plt.subplots(figsize=(8.5, 3.4), layout="constrained")
for chunk in range(4):
    color = plt.cm.viridis(chunk / 3)
    text = "white" if chunk < 2 else "black"
    ax.add_patch(Rectangle((2.5 * chunk, 4), 2.4, 0.8, color=color))
    ax.text(2.5 * chunk + 1.2, 4.4, f"pixels, chunk {chunk}", color=text, ha="center", va="center")
    ax.add_patch(Rectangle((2.5 * chunk + 0.7, 2), 1, 0.8, color=color))
    ax.text(2.5 * chunk + 1.2, 2.4, f"$gw_{chunk}$", color=text, ha="center", va="center")
    style = {"arrowstyle": "-|>", "mutation_scale": 14, "color": "gray"}
    ax.add_patch(FancyArrowPatch((2.5 * chunk + 1.2, 3.9), (2.5 * chunk + 1.2, 2.9), **style))
    ax.add_patch(FancyArrowPatch((2.5 * chunk + 1.2, 1.9), (2.5 * chunk + 1.2, 0.95), **style))
ax.text(4.95, 0.4, r"$gw = ((gw_0 + gw_1) + gw_2) + gw_3$", ha="center", size=13)
ax.text(10.3, 4.4, "all images, in order", va="center")
ax.text(10.3, 2.4, "whichever thread\ncomes to it", va="center")
ax.text(10.3, 0.55, "always in this order", va="center")
ax.set(xlim=(-0.1, 13), ylim=(0, 5))
ax.set_axis_off()
plt.show()
