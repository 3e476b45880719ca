"""A 1-d convolution as connections: the same edges, read forwards and in both directions back."""

import matplotlib.pyplot as plt

COLORS = ("tab:blue", "tab:orange", "tab:green")

figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.6), layout="constrained")
titles = (
    "forward\n$y_j = w_0 x_j + w_1 x_{j+1} + w_2 x_{j+2}$",
    "input gradient of $x_2$\n$w_2\\,gy_0 + w_1\\,gy_1 + w_0\\,gy_2$",
    "weight gradient of $w_1$\n$x_1\\,gy_0 + x_2\\,gy_1 + x_3\\,gy_2$",
)
for which, (ax, title) in enumerate(zip(axes, titles, strict=True)):
    for j in range(3):
        for tap, color in enumerate(COLORS):
            i = j + tap
            shown = (j == 1, i == 2, tap == 1)[which]
            start, end = ((i, 0.12), (j + 1, 0.88))
            if which == 1:
                start, end = end, start
            style = {"arrowstyle": "-|>" if shown and which < 2 else "-", "color": color}
            style |= {"lw": 2.2 if shown else 0.8, "alpha": 1 if shown else 0.3}
            ax.annotate("", end, start, arrowprops=style)
    for i in range(5):
        ax.text(i, 0, f"$x_{i}$", ha="center", va="center", size=13)
    for j in range(3):
        name = f"$gy_{j}$" if which else f"$y_{j}$"
        ax.text(j + 1, 1, name, ha="center", va="center", size=13)
    ax.set(xlim=(-0.4, 4.4), ylim=(-0.15, 1.15))
    ax.set_title(title, fontsize=11)
    ax.set_axis_off()
lines = [plt.Line2D([], [], color=color, lw=2.2, label=f"$w_{tap}$")
         for tap, color in enumerate(COLORS)]  # fmt: skip
figure.legend(handles=lines, loc="outside lower center", ncols=3, frameon=False)
plt.show()
