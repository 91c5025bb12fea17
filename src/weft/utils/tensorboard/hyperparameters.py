"""Hyperparameters and metrics of runs, for the table that compares them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import metadata
from tensorboard.plugins.hparams.api_pb2 import (
    DATA_TYPE_BOOL,
    DATA_TYPE_FLOAT64,
    DATA_TYPE_STRING,
    Experiment,
    HParamInfo,
    MetricInfo,
    MetricName,
    Status,
)
from tensorboard.plugins.hparams.plugin_data_pb2 import (
    HParamsPluginData,
    SessionEndInfo,
    SessionStartInfo,
)

from weft._C import Tensor

_TYPES = {bool: DATA_TYPE_BOOL, int: DATA_TYPE_FLOAT64, float: DATA_TYPE_FLOAT64}


def summaries(
    values: Mapping[str, Any],
    metrics: Mapping[str, Any],
    domains: Mapping[str, Sequence[Any]] | None,
) -> list[Summary]:
    """The experiment, and the beginning and the end of a run of it. `domains`: of hyperparameters
    that have few values."""
    plain = {key: each.item() if isinstance(each, Tensor) else each for key, each in values.items()}
    infos = [_info(key, value, (domains or {}).get(key)) for key, value in plain.items()]
    measured = [MetricInfo(name=MetricName(tag=tag)) for tag in metrics]
    start, now = SessionStartInfo(), time.time()
    start.start_time_secs = now
    for key, value in plain.items():
        if value is not None:
            _set(start.hparams[key], value)
    end = SessionEndInfo(status=Status.STATUS_SUCCESS, end_time_secs=now)
    return [
        _summary(
            metadata.EXPERIMENT_TAG,
            experiment=Experiment(hparam_infos=infos, metric_infos=measured),
        ),
        _summary(metadata.SESSION_START_INFO_TAG, session_start_info=start),
        _summary(metadata.SESSION_END_INFO_TAG, session_end_info=end),
    ]


def _summary(tag: str, **data: Any) -> Summary:
    described = metadata.create_summary_metadata(HParamsPluginData(**data))
    return Summary(value=[Summary.Value(tag=tag, metadata=described)])


def _set(target: Any, value: Any) -> None:
    """Puts a value into a message that holds a bool, a number or a text."""
    kinds = {bool: "bool_value", int: "number_value", float: "number_value", str: "string_value"}
    setattr(target, kinds[type(value)], value)


def _info(key: str, value: Any, domain: Sequence[Any] | None) -> HParamInfo:
    if value is not None and type(value) not in (bool, int, float, str):
        raise ValueError(
            f"add_hparams: expected numbers, bools, texts and None, got {type(value).__name__} "
            f"for {key!r}"
        )
    made = HParamInfo(name=key, type=_TYPES.get(type(value), DATA_TYPE_STRING))
    for each in domain or ():
        _set(made.domain_discrete.values.add(), each)
    return made
