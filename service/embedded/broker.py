"""Celery's messages as files in a folder."""

import time
import uuid
from pathlib import Path
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    """As kombu's, but a message appears under its name only when it is whole.

    kombu's writes a message under its final name, where a reader can take it while it is still empty, which ends
    the reader with a JSON error.
    """

    def _put(self, queue: str, payload: dict[str, Any], **kwargs: Any) -> None:  # type: ignore[override]
        folder = Path(self.data_folder_out)
        # readers take the names that end in `.QUEUE.msg`, in alphabetical order: oldest first
        name = f"{time.monotonic_ns():020d}_{uuid.uuid4()}"
        unfinished = folder / f"{name}.unfinished"
        unfinished.write_text(dumps(payload))
        unfinished.replace(folder / f"{name}.{queue}.msg")


class Transport(filesystem.Transport):
    """kombu's filesystem transport with `Channel`."""

    Channel = Channel
