"""DistributedSampler: each of several processes gets its share of a data set."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sized
from typing import Any

from weft import _C
from weft._C import Generator
from weft.distributed.groups import get_rank, get_world_size
from weft.utils.data.sampler import Sampler, T_co


class DistributedSampler(Sampler[T_co]):
    """Every num_replicas-th index, from `rank` on, of an order that all processes draw alike.

    The order depends on seed and epoch: call `set_epoch` before each. What is missing for equal
    shares is taken from the beginning again; drop_last leaves out what is too much instead.
    num_replicas and rank are those of the default process group where they are not given.

    >>> from weft.utils.data.distributed import DistributedSampler
    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        num_replicas = get_world_size() if num_replicas is None else num_replicas
        rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        full, rest = divmod(len(dataset), num_replicas)
        self.num_samples = full + bool(rest and not drop_last)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[Any]:
        size = len(self.dataset)
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = _C.randperm(size, generator=generator).tolist()
        else:
            order = list(range(size))
        return itertools.islice(
            itertools.cycle(order), self.rank, self.total_size, self.num_replicas
        )

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next pass; every process has to set the same."""
        self.epoch = epoch
