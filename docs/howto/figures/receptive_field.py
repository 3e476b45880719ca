"""The receptive fields of two layers of a ResNet-18."""

import matplotlib.pyplot as plt

import convcore
from convcore import models
from convcore.inspection import pictures

convcore.manual_seed(0)
net, noise = models.resnet18(), convcore.rand(4, 3, 160, 160)
figure = plt.figure(figsize=(9, 3.8), layout="constrained")
for part, layer in zip(figure.subfigures(1, 2), ("layer1", "layer2.0"), strict=True):
    pictures.receptive_field(net, noise, layer, figure=part)
plt.show()
