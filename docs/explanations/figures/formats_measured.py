"""Time in NCHW over time in NHWC, by algorithm, of the layers in the benchmark's record."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

RECORD = Path.cwd().parents[2] / "benchmarks" / "results.md"  # figures are run where they lie
PASSES = ("forward", "input grad", "weight grad")

section = RECORD.read_text("utf-8").split("\n## 1 thread\n")[1].split("\n## ")[0]
ratios = {}
for line in section.splitlines():
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    if len(cells) > 8 and cells[1] in PASSES:
        ratio = float(cells[3]) / float(cells[9])
        ratios.setdefault(cells[2], {}).setdefault(cells[1], []).append(ratio)

figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
names = sorted(ratios)
for index, name in enumerate(PASSES):
    for place, algorithm in enumerate(names):
        found = ratios[algorithm].get(name)
        if not found:
            continue
        x = np.full(len(found), place + 0.22 * (index - 1))
        label = None if name in ax.get_legend_handles_labels()[1] else name
        ax.plot(x, found, "o", color=f"C{index}", alpha=0.7, ms=5, label=label)
        mean = np.exp(np.mean(np.log(found)))
        ax.plot(x[:1], mean, "_", color="black", ms=14, mew=2)
        print(f"{algorithm:14} {name:12} {mean:5.2f} of {len(found)} layers")
ax.axhline(1, color="gray", lw=0.8)
ax.set_yscale("log")
ax.set_yticks([0.7, 1, 1.5, 2], ["0.7", "1", "1.5", "2"])
ax.minorticks_off()
ax.set_xticks(range(len(names)), names)
ax.set_ylabel("time in NCHW / time in NHWC")
ax.legend(title="bars: geometric means", fontsize="small")
plt.show()
