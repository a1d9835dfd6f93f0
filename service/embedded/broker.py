"""Celery's messages as files in a folder."""

import time
import uuid
from pathlib import Path
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    """kombu's filesystem channel, except that a message appears under its name only when it is complete.

    kombu writes a message under its final name. A reader can then take an empty file and fail with a JSON error.
    """

    def _put(self, queue: str, payload: dict[str, Any], **kwargs: Any) -> None:  # type: ignore[override]
        folder = Path(self.data_folder_out)
        # readers take names that end in `.QUEUE.msg` in alphabetical order, so the oldest comes first
        name = f"{time.monotonic_ns():020d}_{uuid.uuid4()}"
        unfinished = folder / f"{name}.unfinished"
        unfinished.write_text(dumps(payload))
        unfinished.replace(folder / f"{name}.{queue}.msg")


class Transport(filesystem.Transport):
    """kombu's filesystem transport with `Channel`."""

    Channel = Channel
