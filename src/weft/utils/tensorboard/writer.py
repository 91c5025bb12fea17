"""SummaryWriter: what a program wants to see, into the event files of a folder."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from weft.utils.tensorboard import animation, charts, embeddings, graphs, hyperparameters, summaries


class FileWriter:
    """The event file of one folder."""

    def __init__(
        self, log_dir: str, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        self._writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return str(self._writer.get_logdir())

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Writes an event, of now unless it is told when."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self._writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Writes a summary."""
        self.add_event(event_pb2.Event(summary=summary), global_step, walltime)

    def add_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Writes a graph."""
        data = graph.SerializeToString()
        self.add_event(event_pb2.Event(graph_def=data), None, walltime)

    def flush(self) -> None:
        """Writes what waits."""
        self._writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the file."""
        self._writer.close()


class SummaryWriter:
    """Writes event files that TensorBoard shows to `log_dir`, by default runs/<time>_<host> with
    `comment` behind it. purge_step: what was written before about this step and later is dropped.

    Values are tensors, arrays or numbers; `global_step` and `walltime` say when. It is a context
    manager that closes the files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 1 / (1 + step), step)
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self._options = (max_queue, flush_secs, filename_suffix)
        self._writers: dict[str, FileWriter] = {}
        if purge_step is not None:
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self.file_writer.add_event(event_pb2.Event(file_version="brain.Event:2"), purge_step)
            self.file_writer.add_event(event_pb2.Event(session_log=start), purge_step)
        _ = self.file_writer

    @property
    def file_writer(self) -> FileWriter:
        """The writer of log_dir; made anew after close()."""
        return self._writer(self.log_dir)

    def _writer(self, folder: str) -> FileWriter:
        if folder not in self._writers:
            self._writers[folder] = FileWriter(folder, *self._options)
        return self._writers[folder]

    def _add(self, summary: Summary, step: Any, walltime: float | None) -> None:
        self.file_writer.add_summary(summary, step, walltime)

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A number. ValueError for several."""
        made = summaries.scalar(tag, scalar_value, new_style, double_precision)
        self._add(made, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Numbers that one chart shows together, each in a folder of its own."""
        base = self.log_dir + os.sep + main_tag.replace("/", "_")
        for tag, value in tag_scalar_dict.items():
            writer = self._writer(f"{base}_{tag}")
            writer.add_summary(summaries.scalar(main_tag, value), global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """A number as a tensor: add_scalar in the new style."""
        self.add_scalar(tag, tensor, global_step, walltime, new_style=True)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How values are distributed. bins: "tensorflow", or as numpy.histogram takes them."""
        self._add(summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A histogram that the program has counted."""
        limits, counts = np.asarray(bucket_limits), np.asarray(bucket_counts)
        if len(limits) != len(counts):
            raise ValueError(
                f"add_histogram_raw: expected a limit for each of {len(counts)} counts, got "
                f"{len(limits)}"
            )
        fields = {"min": min, "max": max, "num": num, "sum": sum, "sum_squares": sum_squares}
        made = summaries.histogram_of_counts(
            tag, **fields, bucket_limit=limits.tolist(), bucket=counts.tolist()
        )
        self._add(made, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """An image: floating values from 0 to 1, or bytes. dataformats: "CHW", "HWC" or "HW"."""
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Images as one grid, eight in a row."""
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: Any = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A figure of Matplotlib, or a list of them. close: they are cleared then."""
        pixels = summaries.pixels_of(figure, close)
        self._add(summaries.image(tag, pixels, "NHWC"), global_step, walltime)

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: Any = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Videos [n, frames, channels, height, width] as one: values as in `add_image`."""
        self._add(animation.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Sound of one channel, from -1 to 1."""
        self._add(summaries.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """A text, shown as Markdown."""
        self._add(summaries.text(tag, text_string), global_step, walltime)

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """The operators of a model, traced on an example."""
        graph = graphs.graph_of(model, input_to_model)
        self.file_writer.add_graph(graph)
        if verbose:
            print(graph)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision over recall of predictions from 0 to 1, whose labels are 0 and 1."""
        rows = charts.counts(labels, predictions, num_thresholds, weights)
        self._add(charts.curve(tag, rows, num_thresholds), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision over recall that the program has counted, a value for each threshold."""
        positive = (true_positive_counts, false_positive_counts)
        rows = (*positive, true_negative_counts, false_negative_counts, precision, recall)
        self._add(charts.curve(tag, rows, num_thresholds), global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Mapping[str, Any] | None = None,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Points [n, count, 3] in space, their colors from 0 to 255, and triangles of them.

        config_dict: settings of the camera, the lights and the material.
        """
        self._add(charts.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Charts that show several tags of `add_scalar`: {category: {title: [kind, tags]}}.

        Kinds: "Multiline", and "Margin" for the tags of a value and its two bounds.
        """
        self._add(charts.layout(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One chart with a line for each tag."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One chart of a value between two bounds: three tags."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: Any = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Points [n, features] for the projector, with labels and images [n, c, h, w]."""
        step = int(global_step or 0)
        embeddings.write(self.log_dir, mat, metadata, label_img, step, tag, metadata_header)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """The hyperparameters of a run and what was measured, in a folder of their own."""
        if not isinstance(hparam_dict, Mapping) or not isinstance(metric_dict, Mapping):
            raise TypeError(
                "add_hparams: expected two dicts, got "
                f"{type(hparam_dict).__name__} and {type(metric_dict).__name__}"
            )
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        writer = FileWriter(folder, *self._options)
        for each in hyperparameters.summaries(hparam_dict, metric_dict, hparam_domain_discrete):
            writer.add_summary(each, global_step)
        for tag, value in metric_dict.items():
            writer.add_summary(summaries.scalar(tag, value), global_step)
        writer.close()

    def flush(self) -> None:
        """Writes what waits."""
        for each in self._writers.values():
            each.flush()

    def close(self) -> None:
        """Writes what waits and closes the files."""
        for each in self._writers.values():
            each.close()
        self._writers.clear()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
