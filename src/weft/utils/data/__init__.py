"""Data sets, samplers and the loader that turns them into batches."""

from weft.utils.data.collate import default_collate, default_convert
from weft.utils.data.dataloader import DataLoader, _DatasetKind
from weft.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from weft.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from weft.utils.data.distributed import DistributedSampler
from weft.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from weft.utils.data.shared import SharedDict, SharedList
from weft.utils.data.worker import WorkerInfo, get_worker_info

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SharedDict",
    "SharedList",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "_DatasetKind",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "random_split",
]
