"""torchvision's nets, transforms, operators, data sets and drawing, without its weights."""

import tempfile
from pathlib import Path

import numpy as np
import torch
import torchvision
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import datasets, models, ops, transforms, tv_tensors, utils
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn as detector
from torchvision.transforms import v2


def show(name, value):
    value = torch.as_tensor(value).detach().double()
    print(name, tuple(value.shape), f"{value.mean():.4e} {value.std():.4e}", flush=True)


print(torchvision.__version__.partition("+")[0], len(models.list_models()))
torch.manual_seed(0)
picture = torch.rand(2, 3, 64, 64)
for name in ("resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "efficientnet_b0", "swin_t"):
    net = models.get_model(name, weights=None, num_classes=5).eval()
    print(name, len(net.state_dict()), len(str(net)))
    show(name, net(picture))
body = models._utils.IntermediateLayerGetter(models.resnet18(), {"layer1": "a", "layer3": "b"})
for name, features in body(picture).items():
    show(name, features)
net = detector(weights=None, weights_backbone=None, num_classes=3)
levels = net.eval().backbone(picture)
print({name: tuple(level.shape) for name, level in levels.items()})
weights = models.ResNet18_Weights.DEFAULT
print(weights, weights.meta["num_params"], weights.meta["categories"][:2])

byte = torch.randint(0, 256, (3, 32, 40), dtype=torch.uint8)
photo = transforms.ToPILImage()(byte)
show("preprocessing", weights.transforms()(photo))
ways = {
    "classes": transforms.Compose(
        [
            transforms.RandomResizedCrop(24),
            transforms.RandomHorizontalFlip(),
            transforms.ColorJitter(0.4, 0.4, 0.4, 0.1),
            transforms.RandomRotation(20),
            transforms.ToTensor(),
            transforms.Normalize([0.5] * 3, [0.2] * 3),
            transforms.RandomErasing(1.0),
        ]
    ),
    "policies": transforms.Compose([transforms.AutoAugment(), transforms.RandAugment()]),
    "second": v2.Compose(
        [v2.ToImage(), v2.TrivialAugmentWide(), v2.ToDtype(torch.float32, scale=True)]
    ),
}
print(ways["classes"])
for name, way in ways.items():
    for seed in range(3):
        torch.manual_seed(seed)
        changed = way(photo)
        show(name, np.asarray(changed) if isinstance(changed, Image.Image) else changed)
boxes = tv_tensors.BoundingBoxes(
    [[2, 3, 20, 25], [5, 5, 30, 30]], format="XYXY", canvas_size=(32, 40)
)
print(boxes)
sample = {"image": tv_tensors.Image(byte), "boxes": boxes, "labels": torch.tensor([1, 2])}
torch.manual_seed(1)
detection = v2.Compose(
    [
        v2.RandomZoomOut(p=1.0),
        v2.RandomIoUCrop(),
        v2.RandomHorizontalFlip(),
        v2.SanitizeBoundingBoxes(),
    ]
)
found = detection(sample)
print({name: (type(value).__name__, tuple(value.shape)) for name, value in found.items()})
images, labels = v2.CutMix(num_classes=3)(picture, torch.tensor([0, 2]))
show("CutMix", images)
show("labels", labels)

torch.manual_seed(2)
x = torch.rand(2, 3, 16, 16, requires_grad=True)
rois = torch.tensor([[0, 1, 1, 9, 12], [1, 0.5, 2, 15, 6]])
pooled = ops.roi_align(x, rois, (3, 2), sampling_ratio=2)
pooled.square().sum().backward()
show("roi_align", pooled)
show("gradient", x.grad)
corners = torch.rand(4, 2) * 20
boxes = torch.cat((corners, corners + 1 + torch.rand(4, 2) * 20), 1)
for name in ("box_iou", "generalized_box_iou", "complete_box_iou", "distance_box_iou"):
    show(name, getattr(ops, name)(boxes, boxes))
for layer in (ops.MLP(16, [8, 4]), ops.StochasticDepth(0.5, "row"), ops.FrozenBatchNorm2d(3)):
    print(layer)
    show("layer", layer(x))

folder = Path(tempfile.mkdtemp())
for label in ("cat", "dog"):
    (folder / label).mkdir()
    for index in range(4):
        values = np.random.default_rng(index).integers(0, 256, (20, 24, 3), np.uint8)
        Image.fromarray(values).save(folder / label / f"{index}.png")
way = transforms.Compose([transforms.RandomCrop(16), transforms.ToTensor()])
pictures = datasets.ImageFolder(str(folder), way)
print(pictures.class_to_idx, len(pictures))
show("FakeData", datasets.FakeData(3, (3, 8, 8), 2, transforms.ToTensor())[1][0])
for workers in (0, 2):
    torch.manual_seed(3)
    for images, labels in DataLoader(pictures, 4, shuffle=True, num_workers=workers):
        show(f"{workers} workers", images)
        print(labels)

grid = utils.make_grid(picture, normalize=True, padding=1)
show("grid", grid)
utils.save_image(grid, folder / "grid.png")
print(Image.open(folder / "grid.png").size)
drawn = utils.draw_bounding_boxes(byte, torch.tensor([[2, 3, 20, 25]]), ["cat"], "red", width=2)
show("drawn", drawn)
show("mask", utils.draw_segmentation_masks(byte, byte[:1] > 128, 0.5, "blue"))
