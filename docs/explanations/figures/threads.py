"""The same eight work items on one, two and three threads: who computes changes, what does not."""

import matplotlib.pyplot as plt
import numpy as np

# How long each item takes; what a thread takes next is the first that nobody has.
DURATIONS = np.array([1.0, 1.1, 0.9, 1.0, 1.2, 1.0, 0.9, 0.6])

figure, axes = plt.subplots(
    3, 1, figsize=(8.5, 4), sharex=True, height_ratios=[1, 2, 3], layout="constrained"
)
for threads, ax in zip((1, 2, 3), axes, strict=True):
    free = np.zeros(threads)
    for item, duration in enumerate(DURATIONS):
        thread = int(free.argmin())
        color = plt.cm.viridis(item / 7)
        ax.barh(thread, duration, left=free[thread], height=0.8, color=color, ec="white")
        where = (free[thread] + duration / 2, thread)
        ax.text(*where, f"{item}", color="white" if item < 5 else "black", ha="center", va="center")
        free[thread] += duration
    ax.set(yticks=range(threads), yticklabels=[f"thread {n}" for n in range(threads)])
    ax.invert_yaxis()
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
axes[-1].set_xlabel("time")
figure.suptitle("Eight work items: their edges, and the sums inside, depend on the shapes alone")
plt.show()
