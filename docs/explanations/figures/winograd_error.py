"""The error of Winograd and of direct sums against the float64 oracle, over input channels.

python docs/explanations/figures/winograd_error.py
"""

import matplotlib.pyplot as plt
import numpy as np

from convcore import engine
from convcore.backends import conv
from convcore.engine import reference

CHANNELS = (16, 32, 64, 128, 256, 512)

rng = np.random.default_rng(0)
errors = {"Winograd": [], "strict: direct sums": []}
for channels in CHANNELS:
    x = rng.standard_normal((1, channels, 28, 28)).astype(np.float32)
    w = rng.standard_normal((64, channels, 3, 3)).astype(np.float32)
    exact = reference.conv_forward(x, w, padding=1)
    bound = reference.conv_forward(np.abs(x), np.abs(w), padding=1)
    for name, strict in (("Winograd", False), ("strict: direct sums", True)):
        with conv.flags(strict=strict):
            y = engine.conv2d(x, w, padding=1)
        errors[name].append(reference.error_in_eps(y, exact, bound, np.float32))
    print(f"{channels:4} channels:", *(f"{name} {e[-1]:.2f} eps" for name, e in errors.items()))

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for name, found in errors.items():
    ax.plot(CHANNELS, found, "o-", label=name)
ax.axhline(12, color="C0", ls=":", label="limit of tests, Winograd")
ax.axhline(4, color="C1", ls=":", label="limit of tests, direct sums")
ax.set_xscale("log", base=2)
ax.set_xticks(CHANNELS, CHANNELS)
ax.set(xlabel="input channels", ylabel="largest error, eps", ylim=0)
ax.legend(fontsize="small")
plt.show()
