"""Celery's messages as files in a folder that only this user can enter."""

import os
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

from service.logger import Logger

logger = Logger(__name__)


class Channel(filesystem.Channel):
    """kombu's filesystem channel, with three differences.

    A message appears under its name only when it is complete. kombu writes it under its final name, so that a reader
    can take an empty file. A message that is taken stays in this folder, while kombu moves it to the folder for
    temporary files, which all users share. And an unreadable message is discarded, while kombu ends the worker.
    """

    def _put(self, queue: str, payload: dict[str, Any], **kwargs: Any) -> None:  # type: ignore[override]
        folder = Path(self.data_folder_out)
        # readers take names that end in `.QUEUE.msg` in alphabetical order, so the oldest comes first
        name = f"{time.monotonic_ns():020d}_{uuid.uuid4()}"
        unfinished = folder / f"{name}.unfinished"
        unfinished.write_text(dumps(payload))
        unfinished.replace(folder / f"{name}.{queue}.msg")

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        folder = Path(self.data_folder_in)
        for name in sorted(path.name for path in folder.iterdir()):
            if name.partition(".")[2] != f"{queue}.msg":
                continue
            taken = folder / f"{name}.{os.getpid()}"
            try:
                (folder / name).rename(taken)
            except FileNotFoundError:  # another worker was faster
                continue
            try:
                payload: dict[str, Any] = loads(taken.read_text())
                self.Message(payload, channel=self)
                return payload
            except Exception:  # whatever is in the file, the worker goes on
                logger.warning("a message is discarded, because it cannot be read", file=name, exc_info=True)
            finally:
                taken.unlink(missing_ok=True)
        raise Empty


class Transport(filesystem.Transport):
    """kombu's filesystem transport with `Channel`."""

    Channel = Channel
