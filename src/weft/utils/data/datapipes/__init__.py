"""Streams of samples that are built by chaining steps: `torch.utils.data.datapipes`."""
