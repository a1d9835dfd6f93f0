"""The parts of reference pages that the code itself describes. Each function returns Markdown.

A line `<!-- generated: NAME -->` of a page stands for such a part.
"""

from collections.abc import Callable, Mapping

from docs._ext.generated import errors, gallery, grpc, methods, metrics, programs, rest, sdk, settings, study_keys

GENERATORS: Mapping[str, Callable[[], str]] = {
    "study-keys": study_keys.table,
    "algorithms": methods.algorithms,
    "resampling": methods.resampling,
    "estimators": methods.estimators,
    "pruning": methods.pruning,
    "stopping": methods.stopping,
    "rest": rest.tables,
    "grpc": grpc.sections,
    "sdk": sdk.sections,
    "trimtab": programs.trimtab,
    "trimtab-agent": programs.agent,
    "trimtab-service": programs.service,
    "errors": errors.table,
    "gallery-machine": gallery.machine,
    "gallery-studied": gallery.studied,
    "gallery-chosen": gallery.chosen,
    "settings": settings.table,
    "metrics": metrics.table,
}
