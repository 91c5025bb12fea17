"""Data sets, samplers and the loader that turns them into batches."""

from weft._runtime.exports import list_exports as _list_exports
from weft.utils.data.collate import default_collate as default_collate
from weft.utils.data.collate import default_convert as default_convert
from weft.utils.data.dataloader import DataLoader as DataLoader
from weft.utils.data.datapipes.datapipe import IterDataPipe as IterDataPipe
from weft.utils.data.datapipes.datapipe import functional_datapipe as functional_datapipe
from weft.utils.data.dataset import ChainDataset as ChainDataset
from weft.utils.data.dataset import ConcatDataset as ConcatDataset
from weft.utils.data.dataset import Dataset as Dataset
from weft.utils.data.dataset import IterableDataset as IterableDataset
from weft.utils.data.dataset import StackDataset as StackDataset
from weft.utils.data.dataset import Subset as Subset
from weft.utils.data.dataset import TensorDataset as TensorDataset
from weft.utils.data.dataset import _DatasetKind as _DatasetKind
from weft.utils.data.dataset import random_split as random_split
from weft.utils.data.distributed import DistributedSampler as DistributedSampler
from weft.utils.data.sampler import BatchSampler as BatchSampler
from weft.utils.data.sampler import RandomSampler as RandomSampler
from weft.utils.data.sampler import Sampler as Sampler
from weft.utils.data.sampler import SequentialSampler as SequentialSampler
from weft.utils.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from weft.utils.data.sampler import WeightedRandomSampler as WeightedRandomSampler
from weft.utils.data.shared import SharedDict as SharedDict
from weft.utils.data.shared import SharedList as SharedList
from weft.utils.data.worker import WorkerInfo as WorkerInfo
from weft.utils.data.worker import get_worker_info as get_worker_info

_list_exports(vars(), "_DatasetKind")
