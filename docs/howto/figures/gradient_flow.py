"""Gradients by layer of ten convolutions, with sigmoids and with ReLUs between them."""

import matplotlib.pyplot as plt

import convcore
from convcore import nn
from convcore.inspection import pictures


def deep(activation):
    """Return ten convolutions with an activation after each."""
    layers = [nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), activation()) for _ in range(10)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


images = convcore.rand(4, 8, 16, 16, generator=convcore.Generator().manual_seed(0))
figure = plt.figure(figsize=(9, 6.4), layout="constrained")
for part, activation in zip(figure.subfigures(1, 2), (nn.Sigmoid, nn.ReLU), strict=True):
    convcore.manual_seed(0)
    net = deep(activation)
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)
    net(images).sum().backward()
    pictures.gradient_flow(net, figure=part)
    part.axes[0].set(title=activation.__name__, ylim=(1e-6, 10))
plt.show()
