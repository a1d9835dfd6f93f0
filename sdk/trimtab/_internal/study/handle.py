"""A study as this process last read it, and what all calls about it share."""

from collections.abc import Mapping
from functools import cached_property

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.connection.transport import Transport
from trimtab._internal.messages.spec import from_spec
from trimtab._internal.messages.trials import from_trial
from trimtab._internal.messages.values import to_int, to_metrics
from trimtab._internal.study.held_trials import HeldTrials
from trimtab.errors import InvalidInput
from trimtab.spec import StudySpec
from trimtab.trial import Metrics, Trial


class StudyHandle:
    """The last message about a study, the connection, and the trials that the client holds. Thread-safe.

    `exhausted` is true if the last call that knows it found no more configurations in the space.
    """

    def __init__(self, transport: Transport, held: HeldTrials, message: pb.Study) -> None:
        self.transport = transport
        self.stub = transport.stub
        self.call = transport.call
        self.held = held
        self.message = message
        self.exhausted = message.space_exhausted

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.message.name

    @cached_property
    def spec(self) -> StudySpec:
        """The specification in the last message."""
        return from_spec(self.message.spec)

    def keep(self, message: pb.Study) -> None:
        """Replace the message by a later one."""
        if message.spec != self.message.spec:
            # The property `spec` is computed again at its next use.
            self.__dict__.pop("spec", None)
        self.message = message
        self.exhausted = message.space_exhausted

    def refresh(self) -> None:
        """Read the study again."""
        self.keep(self.call(self.stub.GetStudy, pb.GetStudyRequest(name=self.name)))

    def to_trial(self, message: pb.Trial) -> Trial:
        """Return the trial in a message."""
        return from_trial(self.spec.space, message)

    def to_metrics(self, metrics: Metrics) -> dict[str, float]:
        """Return metrics by name. Raises InvalidInput for one number if the study has several objectives."""
        if isinstance(metrics, Mapping):
            return to_metrics(metrics)
        names = [objective.metric for objective in self.spec.objectives]
        if len(names) != 1:
            raise InvalidInput.of("metrics", metrics, f"a dict with values for {', '.join(names)}")
        return to_metrics({names[0]: metrics})


def number_of(trial: Trial | int) -> int:
    """Return the number of a trial. Raises InvalidInput."""
    return trial.number if isinstance(trial, Trial) else to_int("trial", trial)
