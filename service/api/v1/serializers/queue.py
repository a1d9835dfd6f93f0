"""The queue, for operators."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class WorkerSerializer(serializers.Serializer[Any]):
    """A process that computes suggestions."""

    name = serializers.CharField()
    seen_at = serializers.DateTimeField()
    busy = serializers.BooleanField()


class DepthSerializer(serializers.Serializer[Any]):
    """What one tenant has in the queue."""

    tenant = serializers.CharField()
    waiting = serializers.IntegerField(help_text="Operations that no worker has taken yet.")
    computing = serializers.IntegerField(help_text="Operations that a worker computes.")
    oldest_seconds = serializers.FloatField(allow_null=True, help_text="For how long the oldest has been waiting.")
    trials_waiting = serializers.IntegerField(help_text="Trials that wait for an agent.")


class QueueSerializer(serializers.Serializer[Any]):
    """Workers, and what waits for them."""

    workers = WorkerSerializer(many=True, help_text="Those that are alive.")
    tenants = DepthSerializer(many=True, help_text="Where anything waits or runs; the longest wait first.")
