"""
Train LeNet on digits, and read its curves
==========================================

A net learns if its loss falls. Whether it learns *well* is seen in four curves: the loss, the
accuracy, both again on images that it has not been trained on (*validation*), and the sizes of its
gradients. This tutorial trains LeNet on 1,438 handwritten digits for some seconds, draws the
curves, and says what to look for in them. Then it turns the learning rate up and down, to show what
bad curves look like.
"""

import matplotlib.pyplot as plt

import convcore as torch
from convcore.demo.digits import load_digits
from convcore.models import LeNet
from convcore.nn import functional as F
from convcore.utils.data import DataLoader

# %%
# The data
# --------
#
# scikit-learn carries 1,797 handwritten digits of 8x8 pixels. LeNet is made for 28x28, so they are
# enlarged. A fifth is held out: the net never trains on it, and what it does there is what it will
# do on digits that nobody has seen.

torch.manual_seed(0)
train, held_out = load_digits(seed=0)


def enlarged(dataset):
    """Return a data set's images, as 28x28 pixels, and its labels."""
    images, labels = dataset.tensors
    return F.interpolate(images, size=(28, 28), mode="bilinear"), labels


train_images, train_labels = enlarged(train)
test_images, test_labels = enlarged(held_out)
batches = DataLoader(
    torch.utils.data.TensorDataset(train_images, train_labels), batch_size=64, shuffle=True
)

figure, axes = plt.subplots(1, 8, figsize=(8, 1.4), layout="constrained")
for ax, picture, label in zip(axes, train_images, train_labels, strict=False):
    ax.imshow(picture[0], cmap="gray_r")
    ax.set(title=str(label.item()), xticks=[], yticks=[])
plt.show()

# %%
# The training loop
# -----------------
#
# After each step, three things are written down: the loss of the batch, its accuracy, and the norm
# of each layer's weight gradient. After each epoch the net is tested on the held-out digits, in
# ``eval`` mode, in which dropout does nothing.


def accuracy(scores, labels):
    """Return the share of rows whose largest score is at the label."""
    return (scores.argmax(1) == labels).float().mean().item()


def fit(lr, epochs):
    """Train a LeNet; return the curves: a list a name, one number a step or an epoch."""
    torch.manual_seed(1)
    net = LeNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    names = ("loss", "accuracy", "test loss", "test accuracy", "norms")
    curves: dict[str, list] = {name: [] for name in names}
    for _ in range(epochs):
        net.train()
        for images, labels in batches:
            output = net(images)
            loss = F.nll_loss(output, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            curves["loss"].append(loss.item())
            curves["accuracy"].append(accuracy(output, labels))
            norms = {
                name: weight.grad.norm().item()
                for name, weight in net.named_parameters()
                if name.endswith("weight")
            }
            curves["norms"].append(norms)
        net.eval()
        with torch.no_grad():
            output = net(test_images)
        curves["test loss"].append(F.nll_loss(output, test_labels).item())
        curves["test accuracy"].append(accuracy(output, test_labels))
    return curves


EPOCHS = 8
curves = fit(lr=0.05, epochs=EPOCHS)
print(f"accuracy on held-out digits: {curves['test accuracy'][-1]:.1%}")

# %%
# The curves
# ----------

figure, (top, middle, bottom) = plt.subplots(
    3, 1, figsize=(7.5, 8), sharex=True, layout="constrained"
)
steps_an_epoch = len(batches)
ends = [steps_an_epoch * (epoch + 1) for epoch in range(EPOCHS)]
top.plot(curves["loss"], lw=0.8, label="training, each batch")
top.plot(ends, curves["test loss"], "o-", label="held-out digits, each epoch")
top.set(ylabel="loss", ylim=0)
top.legend()
middle.plot(curves["accuracy"], lw=0.8)
middle.plot(ends, curves["test accuracy"], "o-")
middle.set(ylabel="accuracy", ylim=(0, 1.03))
for name in curves["norms"][0]:
    bottom.semilogy([norms[name] for norms in curves["norms"]], lw=0.9, label=name)
bottom.set(ylabel="gradient norm", xlabel="step")
bottom.legend(ncols=4, fontsize="small")
plt.show()

# %%
# How to read them:
#
# - **The loss starts at ln 10, about 2.3.** That is the loss of a net that gives each of ten
#   classes a probability of a tenth. A first loss far above it says that the weights were
#   initialised too large, or that the images are not scaled; one below it, that a label leaks into
#   the input.
# - **The training curve is jagged**, since each batch is a different sample of 64 digits. Judge its
#   trend, never one step.
# - **The held-out loss lies below the training loss** here. That is no mistake: dropout removes
#   half of the features in training and none in testing. Without dropout it usually lies above.
# - **Overfitting** would be a held-out loss that turns *upwards* while the training loss still
#   falls, epoch after epoch. A single point that lies higher, as at a jagged curve's end, is none.
# - **The loss stands still for some twenty steps** before it falls: small weights make small
#   gradients, as the lowest curves show, and momentum has to gather speed. Do not stop a run too
#   early.
# - **The gradient norms of all layers** lie within a factor of some ten of each other. A layer
#   whose norm is a thousandth of the others' hardly learns ("vanishing gradient"); norms that grow
#   from step to step announce that training will blow up.
#
# What a wrong learning rate looks like
# -------------------------------------
#
# The learning rate is the first thing to change if a curve looks bad, in factors of ten.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.2), layout="constrained")
for lr, note in ((0.0005, "too small"), (0.05, "good"), (1.0, "too large")):
    found = curves if lr == 0.05 else fit(lr, epochs=2)
    norms = [step["conv1.weight"] for step in found["norms"][: 2 * steps_an_epoch]]
    left.plot(found["loss"][: 2 * steps_an_epoch], lw=0.9, label=f"{lr}: {note}")
    right.semilogy(norms, lw=0.9)
left.set(ylim=(0, 4), xlabel="step", title="training loss")
left.legend(title="learning rate")
right.set(xlabel="step", title="gradient norm of conv1")
plt.show()

# %%
# Too small, and nothing is wrong but the speed: the loss will fall, some hundred times later. Too
# large, and the loss stays near ln 10 for good, since each step throws the weights far away. The
# gradient norm tells the two apart: too large a rate makes it swing over many powers of ten, up to
# a spike and down to exact zeros, where no ReLU is positive any more and nothing reaches the first
# layer. Begin again with a smaller rate; further steps rarely revive such a net.
#
# ``convcore demo training`` trains a larger net, a ResNet-8, with the same loop, on digits and on
# patches of photographs, with a learning rate that rises and falls.
