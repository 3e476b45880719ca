"""tensorboardX's event files: scalars, histograms, images, texts, curves and embeddings."""

import struct
import tempfile
from pathlib import Path

import torch
from small_net import build
from tensorboardX import SummaryWriter
from tensorboardX.proto.event_pb2 import Event


def events(file):
    data = file.read_bytes()
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        yield Event.FromString(data[12 : 12 + size])
        data = data[16 + size :]


model, pixels = build(), torch.arange(768.0).reshape(4, 3, 8, 8) / 768
with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        writer.add_scalar("loss", torch.tensor(0.5), 1)
        writer.add_scalars("both", {"a": 1.0, "b": torch.tensor(2.0)}, 1)
        writer.add_image("image", pixels[0], 1)
        writer.add_images("images", pixels, 1)
        writer.add_text("text", "hello", 1)
        writer.add_pr_curve("curve", torch.tensor([0, 1, 1, 0]), torch.tensor([0.1, 0.9, 0.4, 0.6]))
        writer.add_embedding(torch.rand(4, 3), metadata=list("abcd"), label_img=pixels)
        for name, parameter in model.named_parameters():
            writer.add_histogram(name, parameter, 1)
    for file in sorted(Path(folder).rglob("*tfevents*")):
        for event in events(file):
            for value in event.summary.value:
                size = len(value.image.encoded_image_string)
                total = (value.histo.num, f"{value.histo.sum:.4e}", f"{value.histo.max:.4e}")
                print(value.tag, value.WhichOneof("value"), value.simple_value, size, *total)
