"""What a net holds inside: forward and backward hooks, Grad-CAM, saved tensors, a cut graph."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(9)
net = nn.Sequential()
for name, layer in [
    ("conv1", nn.Conv2d(3, 6, 3, padding=1)),
    ("relu1", nn.ReLU()),
    ("pool", nn.MaxPool2d(2)),
    ("conv2", nn.Conv2d(6, 8, 3, padding=1)),
    ("relu2", nn.ReLU()),
    ("head", nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))),
]:
    net.add_module(name, layer)
features, gradients, order = {}, {}, []


def get_features(name):
    def hook(model, input, output):
        features[name] = output.detach()
        order.append(name)

    return hook


def keep_gradient(module, grad_input, grad_output):
    gradients["conv2"] = grad_output[0]
    order.append("backward")


handles = [m.register_forward_hook(get_features(n)) for n, m in net.named_children()]
handles.append(net.conv2.register_full_backward_hook(keep_gradient))
pre = net.head.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
image = torch.rand(1, 3, 12, 12, requires_grad=True)
logits = net(image)
score = logits[0, logits.argmax(1)]
score.backward()
print(order, logits.argmax(1).item())
for name, value in features.items():
    print(
        f"{name:6s} {tuple(value.shape)} mean {value.mean():.5f} zeros {(value == 0).sum().item()}"
    )
weights = gradients["conv2"].mean(dim=(2, 3), keepdim=True)
cam = F.relu((weights * features["conv2"]).sum(1, keepdim=True))
cam = F.interpolate(cam, image.shape[2:], mode="bilinear", align_corners=False)
print("cam", cam.shape, cam.max(), "saliency", image.grad.abs().amax(1).sum())
for handle in [*handles, pre]:
    handle.remove()
count = len(order)
with torch.no_grad():
    net(image)
print("after removal", len(order) - count)

packed = []
with torch.autograd.graph.saved_tensors_hooks(
    lambda x: packed.append(tuple(x.shape)) or x.numpy(force=True), torch.from_numpy
):
    loss = net(image.detach()).logsumexp(1).sum()
net.zero_grad()
loss.backward()
print("saved and brought back:", f"{net.conv1.weight.grad.norm():.5f}")
middle = net.pool(net.relu1(net.conv1(image.detach())))
middle.retain_grad()
noted = []
middle.register_hook(lambda g: noted.append(g.norm().item()) or g / 2)
net.head(net.relu2(net.conv2(middle))).sum().backward()
print(
    len(packed) > 5,
    [round(n, 5) for n in noted],
    middle.grad.norm(),
    middle.is_leaf,
    middle.grad_fn.name(),
)
extractor = nn.Sequential(*list(net.children())[:4])
print(extractor(image).shape, sum(p.grad is not None for p in extractor.parameters()))
assert middle.grad.norm().item() * 2 - noted[0] < 1e-5 and cam.max() > 0
