"""col2im: the four columns go back to where they came from, and overlaps are added up."""

import matplotlib.pyplot as plt
import numpy as np

from convcore import engine

figure, axes = plt.subplots(1, 5, figsize=(9, 2.3), layout="constrained")
columns = np.zeros((9, 4))
for place, ax in enumerate(axes):
    if place < 4:
        columns[:] = 0
        columns[:, place] = 1
        title = f"column {place} alone"
    else:
        columns[:] = 1
        title = "all four"
    image = engine.col2im(columns, 5, (3, 3), stride=2)[0]
    ax.imshow(image, cmap="Blues", vmin=0, vmax=6)
    for (row, column), value in np.ndenumerate(image):
        ax.text(column, row, f"{value:.0f}", ha="center", va="center")
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
