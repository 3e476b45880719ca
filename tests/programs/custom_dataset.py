"""A Dataset of one's own, transforms that draw from NumPy, worker processes, a weighted sampler."""

import random

import numpy as np
import torch
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    WeightedRandomSampler,
    get_worker_info,
)


class RandomCrop:
    def __init__(self, size):
        self.size = size

    def __call__(self, sample):
        image = sample["image"]
        top, left = (np.random.randint(0, n - self.size + 1) for n in image.shape[:2])
        return {**sample, "image": image[top : top + self.size, left : left + self.size]}


class ToTensor:
    def __call__(self, sample):
        image = np.ascontiguousarray(sample["image"].transpose((2, 0, 1)))
        return {
            "image": torch.from_numpy(image) + random.random(),
            "points": torch.tensor(sample["points"]),
        }


class Faces(Dataset):
    def __init__(self, count, transform=None):
        self.images = np.arange(count * 108, dtype=np.float64).reshape(count, 6, 6, 3) / 100
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        sample = {"image": self.images[idx], "points": [float(idx), -float(idx)]}
        return self.transform(sample) if self.transform else sample


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for i in range(info.id, 12, info.num_workers):
            yield i, float(torch.rand(())), np.random.rand()


def compose(sample):
    for step in (RandomCrop(4), ToTensor()):
        sample = step(sample)
    return sample


def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


if __name__ == "__main__":
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    data = ConcatDataset([Faces(10, compose), Subset(Faces(20, compose), range(5, 10))])
    for workers, init in ((0, None), (2, None), (2, seed_worker)):
        loader = DataLoader(data, 4, shuffle=True, num_workers=workers, worker_init_fn=init)
        for i, batch in enumerate(loader):
            print(
                workers, i, tuple(batch["image"].shape), batch["image"].dtype, batch["points"][:, 0]
            )
            print(f"   {batch['image'].mean().item():.6f} {batch['image'].std().item():.6f}")
    g = torch.Generator().manual_seed(3)
    for i, u, v in DataLoader(Stream(), batch_size=3, num_workers=2, generator=g):
        print(i.tolist(), u, v)
    sampler = WeightedRandomSampler([0.1, 0.9, 0.4, 0.7, 3.0], 8)
    print(list(sampler), torch.rand(1), f"{np.random.rand():.6f} {random.random():.6f}")
    assert len(loader) == 4 and sum(len(b["points"]) for b in loader) == 15
