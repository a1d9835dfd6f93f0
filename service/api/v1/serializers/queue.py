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
    """The entries of one tenant in the queue."""

    tenant = serializers.CharField()
    waiting = serializers.IntegerField(help_text="Operations that wait for a worker.")
    computing = serializers.IntegerField(help_text="Operations that a worker is computing.")
    oldest_seconds = serializers.FloatField(allow_null=True, help_text="Waiting time of the oldest operation.")
    trials_waiting = serializers.IntegerField(help_text="Trials that wait for an agent.")


class QueueSerializer(serializers.Serializer[Any]):
    """Workers and the queue."""

    workers = WorkerSerializer(many=True, help_text="Live workers.")
    tenants = DepthSerializer(many=True, help_text="Tenants with entries, the longest wait first.")
