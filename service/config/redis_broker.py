"""Celery's messages in Redis. A message that somebody else has written, and that cannot be read, is discarded."""

from queue import Empty
from typing import Any

from kombu.transport import redis

from service.logger import Logger

logger = Logger(__name__)


class Channel(redis.Channel):
    """kombu's channel, except that bytes that are no JSON do not end the worker."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]  # kombu's types lack it
        except (UnicodeDecodeError, RecursionError, ValueError):
            logger.warning("a message is discarded, because it is no JSON", exc_info=True)
            raise Empty from None


class Transport(redis.Transport):
    """kombu's transport with `Channel`, except that JSON that is no message does not end the worker."""

    Channel = Channel

    def _deliver(self, message: Any, queue: str | None) -> None:
        properties = message.get("properties") if isinstance(message, dict) else None
        if not isinstance(properties, dict) or "delivery_tag" not in properties:
            logger.warning("a message is discarded, because it has no properties", queue=queue)
            return
        super()._deliver(message, queue)
