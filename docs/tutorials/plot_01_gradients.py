"""
What is a convolution's gradient?
=================================

Five questions that people ask when they first look inside a convolutional net, each answered by a
few lines that you can run. convcore has PyTorch's names, so that what you learn here holds there
too. You need to know what a derivative is, and some Python.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import convcore as torch
from convcore import engine, nn
from convcore.nn import functional as F

# %%
# 1. Where does an input's gradient come from?
# --------------------------------------------
#
# Take the smallest net that has all the parts: an image of 5x5 ones, a convolution with four 1x1
# kernels (a weight of 1 each), the mean of each of the four maps, and cross entropy as the loss.
# The right class is number 2. A *hook* is a function that is called with a gradient when the
# backward pass gets there; here each hook stores what it sees.

image = torch.ones(1, 1, 5, 5, requires_grad=True)
conv = nn.Conv2d(1, 4, kernel_size=1, bias=False)
nn.init.ones_(conv.weight)

seen: dict[str, torch.Tensor] = {}
maps = conv(image)
maps.register_hook(lambda grad: seen.update(maps=grad))
scores = F.adaptive_avg_pool2d(maps, 1).flatten(1)
scores.register_hook(lambda grad: seen.update(scores=grad))
loss = F.cross_entropy(scores, torch.tensor([2]))
loss.backward()

print("gradient of the scores:", seen["scores"])
print("of one pixel of each map:", seen["maps"][0, :, 0, 0])
print("of the weights:", conv.weight.grad.flatten())
print("of one pixel of the image:", image.grad[0, 0, 0, 0])

# %%
# Read it from the loss back to the image:
#
# - All four scores are equal, so the net gives each class a probability of .25. Cross entropy's
#   gradient is the probability, less 1 for the right class: .25, .25, -.75, .25.
# - A score is the *mean* of 25 pixels: each pixel has a 25th of the score's gradient. That is how
#   .25 becomes .01 and -.75 becomes -.03.
# - A weight was multiplied by 25 pixels of value 1: its gradient is the *sum* over them of pixel
#   times gradient, 25 * .01 = .25.
# - A pixel of the image went into all four maps: its gradient is the sum over the maps of weight
#   times gradient, .01 + .01 - .03 + .01 = 0. A brighter image would change no probability.
#
# A larger kernel changes one thing: a pixel is then used by several outputs of the same map, and
# its gradient sums over these too. With a 3x3 kernel of ones, a corner of the image is used by one
# output and the middle by nine, if nothing is padded:

picture = torch.ones(1, 1, 5, 5, requires_grad=True)
kernel = torch.ones(1, 1, 3, 3)
F.conv2d(picture, kernel).sum().backward()
print(picture.grad[0, 0])

# %%
# A hook may also *return* a gradient, which then takes the place of the one it was given. Here the
# right class's gradient is made positive, and the change travels on to the maps:

maps = conv(image)
scores = F.adaptive_avg_pool2d(maps, 1).flatten(1)
scores.register_hook(lambda grad: grad + torch.tensor([[0, 0, 2, 0]]))
changed: dict[str, torch.Tensor] = {}
maps.register_hook(lambda grad: changed.update(maps=grad))
F.cross_entropy(scores, torch.tensor([2])).backward()

figure, axes = plt.subplots(2, 4, figsize=(7.5, 4), layout="constrained")
for row, (title, gradient) in enumerate([("as it is", seen), ("changed", changed)]):
    for channel, ax in enumerate(axes[row]):
        ax.imshow(gradient["maps"][0, channel], cmap="RdBu_r", vmin=-0.1, vmax=0.1)
        ax.set(title=f"map {channel}, {title}", xticks=[], yticks=[])
        ax.text(2, 2, f"{gradient['maps'][0, channel, 2, 2].item():.2f}", ha="center", va="center")
figure.colorbar(axes[0, 0].images[0], ax=axes, label="gradient of a pixel")
figure.suptitle("The gradient of the loss with respect to the four maps")
plt.show()

# %%
# 2. Why does a weight of zero have a gradient?
# ---------------------------------------------
#
# Three weights in a row, the middle one zero. One might expect that its gradient is zero too.

weights = [torch.tensor(value, requires_grad=True) for value in (1.0, 0.0, 1.0)]
first, second, third = weights
x = torch.tensor(1.688)
(third * (second * (first * x))).backward()
print("gradients:", [round(weight.grad.item(), 4) for weight in weights])

# %%
# It is the other way round. The gradient says what would happen to the result if the weight
# changed, so it is the product of what came *in* and what comes *back*: 1.688 * 1. The weight
# itself is not among the factors. The *other* two weights get nothing, since all that they do
# passes through the zero.
#
# The same holds for convolutions. Set the middle one of three filters to zero ("prune" it): its
# weight gradient is far from zero, and the next step of an optimizer would bring the filter back.
# To silence a filter for good, multiply its *activation* by zero; then no gradient reaches it.

torch.manual_seed(0)
photo = torch.randn(1, 3, 8, 8)
mask = torch.tensor([1.0, 0.0, 1.0]).view(3, 1, 1)
gradients = {}
for name in ("its weights are zero", "its activation is zero"):
    one, two = (nn.Conv2d(3, 3, kernel_size=3, padding=1, bias=False) for _ in range(2))
    if name == "its weights are zero":
        one.weight.data *= mask.view(3, 1, 1, 1)
        hidden = one(photo)
    else:
        hidden = one(photo) * mask
    two(hidden).square().sum().backward()
    gradients[name] = one.weight.grad.flatten(1).norm(dim=1)

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for place, (name, norms) in enumerate(gradients.items()):
    bars = ax.bar(np.arange(3) + 0.4 * place - 0.2, norms, width=0.36, label=name)
    ax.bar_label(bars, fmt="%.0f")
ax.set(xticks=range(3), xticklabels=["filter 0", "filter 1: masked", "filter 2"])
ax.set(ylabel="norm of the weight gradient", title="A masked filter")
ax.margins(y=0.15)
ax.legend()
plt.show()

# %%
# 3. How do I see what happens inside?
# ------------------------------------
#
# By hooks, again, but on modules: a *forward hook* is called with each module's inputs and output.
# This one writes down the shape and counts the weights.

net = nn.Sequential(
    nn.Conv2d(1, 10, kernel_size=5), nn.MaxPool2d(2), nn.ReLU(),
    nn.Conv2d(10, 20, kernel_size=5), nn.MaxPool2d(2), nn.ReLU(),
    nn.Flatten(), nn.Linear(320, 50), nn.Linear(50, 10),
)  # fmt: skip


def describe(module, inputs, output):
    """Print a module's name, the shape of its output and the number of its parameters."""
    size = sum(parameter.numel() for parameter in module.parameters())
    print(f"{type(module).__name__:10} {tuple(output.shape)!s:18} {size:6}")


handles = [module.register_forward_hook(describe) for module in net]
net(torch.zeros(1, 1, 28, 28))
for handle in handles:
    handle.remove()
print("parameters:", sum(parameter.numel() for parameter in net.parameters()))

# %%
# ``convcore summary lenet`` prints such a table, with multiply-adds and memory, from the command
# line. The pictures inside a net are the subject of the tutorial on feature maps.
#
# 4. Why does my backward hook show the wrong gradients?
# ------------------------------------------------------
#
# Because there are two of them. The old ``register_backward_hook`` sits on the *last operation* of
# the module, and shows that operation's gradients. Where a module ends with a division by four,
# that is what you see: the gradient of the thing that is divided, and none for the 4.
# ``register_full_backward_hook`` shows the gradients of the module's own inputs.


class Quarter(nn.Linear):
    """A linear layer, and a division."""

    def forward(self, input):
        """Return a fourth of the linear layer's output."""
        return super().forward(input) / 4


for register in ("register_backward_hook", "register_full_backward_hook"):
    layer = Quarter(4, 1)
    nn.init.constant_(layer.weight, 8.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the old hook warns, and says which one to use
        getattr(layer, register)(lambda module, grad_input, grad_output: print(grad_input))
        print(f"{register}:", end=" ")
        layer(torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)).backward()

# %%
# A weight of 8, divided by 4, is a gradient of 2 for each input. The full hook is right.
#
# 5. How large is what im2col gives?
# ----------------------------------
#
# A convolution can be written as one product of matrices: copy the patch under the kernel, at every
# place where the kernel is put, into a column. This is called *im2col*. A line of ``h`` pixels
# under a kernel of ``kh`` taps, with stride ``s`` and dilation ``d``, has ``oh = (h - (d*(kh-1) +
# 1)) // s + 1`` such places.


def places(h, kh, s=1, d=1):
    """Return how often a kernel of ``kh`` taps fits into ``h`` pixels."""
    return (h - (d * (kh - 1) + 1)) // s + 1


numbers = np.arange(25.0).reshape(1, 1, 5, 5)
columns = engine.im2col(numbers, 3, stride=2)
print("places:", places(5, 3, s=2), "x", places(5, 3, s=2), "  columns:", columns.shape)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(7, 4), width_ratios=[5, 4], layout="constrained"
)
left.imshow(numbers[0, 0], cmap="viridis", vmin=0, vmax=24)
left.set_title("image, 5 x 5")
right.imshow(columns[0], cmap="viridis", vmin=0, vmax=24)
right.set_title("columns, 9 taps x 4 places")
for ax, table in ((left, numbers[0, 0]), (right, columns[0])):
    ax.set(xticks=[], yticks=[])
    for (row, column), value in np.ndenumerate(table):
        color = "black" if value > 12 else "white"
        ax.text(column, row, f"{value:.0f}", ha="center", va="center", color=color)
plt.show()

# %%
# The convolution is then ``weights @ columns``, a row of nine weights times nine rows of pixels:

weight = np.arange(9.0).reshape(1, 1, 3, 3)
by_matrix = (weight.reshape(1, 9) @ columns[0]).reshape(2, 2)
by_engine = engine.conv2d(numbers, weight, stride=2)[0, 0]
print(by_matrix)
print("the same as the engine's:", np.array_equal(by_matrix, by_engine))

# %%
# The same formula, solved for another of its letters, gives the size of the gradients. Solved for
# ``h`` it is the input gradient's, which is a transposed convolution. Solved for ``kh`` it is the
# weight gradient's, which is a convolution of the input with the output's gradient in which stride
# and dilation have changed places.

h, kh, s, d = 11, 3, 2, 2
oh = places(h, kh, s, d)
x, w, grad_output = (torch.ones(1, 1, n, n) for n in (h, kh, oh))
print("output:", F.conv2d(x, w, stride=s, dilation=d).shape[-1], "=", oh)
input_grad = F.conv_transpose2d(grad_output, w, stride=s, dilation=d)
print("input gradient:", input_grad.shape[-1], "=", (oh - 1) * s + d * (kh - 1) + 1)
weight_grad = F.conv2d(x, grad_output, stride=d, dilation=s)
print("weight gradient:", weight_grad.shape[-1], "=", places(h, oh, d, s))

# %%
# Read on in :doc:`/explanations/gradients`, which has the formulas with all their indices, and in
# :doc:`/explanations/im2col`, which draws im2col and its way back step by step.
