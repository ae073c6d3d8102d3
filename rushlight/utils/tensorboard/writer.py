"""`SummaryWriter`: a folder of event files."""

from __future__ import annotations

import os
import socket
import threading
import time
from datetime import datetime
from typing import Any

import numpy as np

from rushlight.core.absent import absent_function
from rushlight.utils.tensorboard import summaries

from tensorboard.compat.proto.event_pb2 import Event  # isort: skip (summaries says how to get it)
from tensorboard.summary.writer.event_file_writer import EventFileWriter  # isort: skip


class FileWriter:
    """One event file in the folder `log_dir`."""

    def __init__(self, log_dir: str | os.PathLike, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""):
        self.event_writer = EventFileWriter(os.fspath(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """Return the folder."""
        return self.event_writer.get_logdir()

    def add_summary(self, summary: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Write records of a step."""
        step = None if global_step is None else int(global_step)
        self.event_writer.add_event(Event(summary=summary, step=step, wall_time=time.time() if walltime is None else walltime))

    def flush(self) -> None:
        """Write everything to the disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """Close the file."""
        self.event_writer.close()


class SummaryWriter:
    """Writes a training's logs to files in `log_dir`, by default `runs/TIME_HOST` and the comment.

    `purge_step` is written to the file; TensorBoard drops earlier logs from that step on. `add_*` take `global_step`, the step,
    and `walltime`, seconds since 1970, now by default. ImportError without the package tensorboard.
    """

    def __init__(
        self, log_dir: str | os.PathLike | None = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            log_dir = os.path.join("runs", f"{datetime.now():%b%d_%H-%M-%S}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self._settings = (max_queue, flush_secs, filename_suffix)
        self._lock = threading.Lock()
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        with self._lock:
            if self.file_writer is None or self.all_writers is None:
                self.file_writer = FileWriter(self.log_dir, *self._settings)
                self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
                if self.purge_step is not None:
                    from tensorboard.compat.proto.event_pb2 import SessionLog

                    writer = self.file_writer.event_writer
                    writer.add_event(Event(step=self.purge_step, file_version="brain.Event:2", wall_time=time.time()))
                    log = SessionLog(status=SessionLog.START)
                    writer.add_event(Event(step=self.purge_step, session_log=log, wall_time=time.time()))
                    self.purge_step = None
            return self.file_writer

    def _writer_of(self, folder: str) -> FileWriter:
        with self._lock:
            writers = self.all_writers or {}
            if folder not in writers:
                writers[folder] = FileWriter(folder, *self._settings)
            return writers[folder]

    def get_logdir(self) -> str:
        """Return the folder."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Add a number: a float, or a tensor of one element. AssertionError for more."""
        made = summaries.scalar(tag, scalar_value, new_style, double_precision)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Add several numbers in one chart; each has its own folder."""
        when = time.time() if walltime is None else walltime
        base = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            folder = f"{base}/{main_tag.replace('/', '_')}_{tag}"
            self._writer_of(folder).add_summary(summaries.scalar(main_tag, value), global_step, when)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow", walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Add a histogram of values. `bins` are those of `numpy.histogram`. ValueError for values that are not finite."""
        self._get_file_writer().add_summary(summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: float, max: float, num: int, sum: float, sum_squares: float, bucket_limits: Any,
        bucket_counts: Any, global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a precomputed histogram. ValueError where limits and counts differ in number."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts)")
        made = summaries.raw_histogram(
            tag, min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts
        )
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None, dataformats: str = "CHW"
    ) -> None:
        """Add a picture, by Pillow. ValueError where `dataformats` does not fit its shape."""
        self._get_file_writer().add_summary(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Add a batch of pictures, as a grid."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Add a figure of matplotlib, or several, as pictures. They are closed afterwards if `close`."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        several = isinstance(figure, list | tuple)
        pictures = []
        for each in figure if several else [figure]:
            canvas = FigureCanvasAgg(each)
            canvas.draw()
            pictures.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(each)
        self.add_image(tag, np.stack(pictures), global_step, walltime, "NHWC")

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100, walltime: float | None = None
    ) -> None:
        """Add a sound, numbers from -1 to 1."""
        self._get_file_writer().add_summary(summaries.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:  # fmt: skip
        """Add a text, which may be Markdown."""
        self._get_file_writer().add_summary(summaries.text(tag, text_string), global_step, walltime)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: dict | None = None,
        run_name: str | None = None, global_step: int | None = None,
    ) -> None:  # fmt: skip
        """Add the hyperparameters and metrics of a training, as texts and numbers of a separate run, `run_name`.

        TypeError for anything but dicts, and with `hparam_domain_discrete`, which TensorBoard's table of parameters needs.
        """
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        if hparam_domain_discrete is not None:
            raise TypeError("add_hparams: hparam_domain_discrete is not here; parameters are written as a text")
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            rows = "\n".join(f"| {name} | {value} |" for name, value in hparam_dict.items())
            writer.add_text("hparams", f"| parameter | value |\n|---|---|\n{rows}", global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def flush(self) -> None:
        """Write everything to the disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Close the files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name in ("add_graph", "add_embedding", "add_pr_curve", "add_mesh", "add_video", "add_custom_scalars", "add_tensor"):
            return absent_function(f"torch.utils.tensorboard.SummaryWriter.{name}")
        raise AttributeError(f"'SummaryWriter' object has no attribute {name!r}")
