"""Feature maps of a photograph, in the first block of a ResNet-18 with random weights."""

import matplotlib.pyplot as plt

import convcore
from convcore import inspection, models
from convcore.demo.training import load_photographs
from convcore.inspection import pictures

convcore.manual_seed(0)
net = models.resnet18().eval()
flower = convcore.from_numpy(load_photographs()["flower"][60:348, 200:488].copy())
photograph = flower.permute(2, 0, 1)[None]
with inspection.capture(net, "layer1", of="output") as found:
    net(photograph)
figure = plt.figure(figsize=(9, 3), layout="constrained")
pictures.feature_maps(found["layer1"], most=16, title="layer1", figure=figure)
plt.show()
