"""Datasets, samplers, collation and the DataLoader."""

from convcore._errors import names as _names
from convcore.utils.data._utils.collate import default_collate, default_convert
from convcore.utils.data._utils.worker import get_worker_info
from convcore.utils.data.dataloader import DataLoader
from convcore.utils.data.dataloader import _DatasetKind as _DatasetKind
from convcore.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from convcore.utils.data.distributed import DistributedSampler
from convcore.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]

_names.explain_names(__name__)
