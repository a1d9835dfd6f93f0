"""A study as this process last read it, and what all calls about it share."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.spec import from_spec
from trimtab._internal.messages.trials import from_trial
from trimtab._internal.messages.values import to_int, to_metrics
from trimtab._internal.study.caller import Caller
from trimtab._internal.study.held_trials import HeldTrials
from trimtab.errors import InvalidInput
from trimtab.spec import StudySpec
from trimtab.trial import Metrics, Trial

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from grpc import UnaryUnaryMultiCallable

Request = TypeVar("Request", bound="Message")
Answer = TypeVar("Answer", bound="Message")


class StudyHandle:
    """The last message about a study, the connection, and the trials that the client holds. Thread-safe.

    `exhausted` is true if the last call that knows it found no more configurations in the space.
    """

    def __init__(self, caller: Caller, held: HeldTrials, message: pb.Study) -> None:
        self.caller = caller
        self.transport = caller.transport
        self.stub = caller.transport.stub
        self.held = held
        self.message = message
        self.exhausted = message.space_exhausted

    def call(self, method: "UnaryUnaryMultiCallable[Request, Answer]", request: Request) -> Answer:
        """Send a request about this study, as `Transport.call` does.

        Raises:
            NotFound: the study was deleted, and another one has its name by now (`study_replaced`).
        """
        return self.transport.call(method, request, study_uid=self.uid)

    @property
    def uid(self) -> str:
        """The identity of the study; empty if the service is too old to tell it."""
        return self.message.uid

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

    def number_of(self, trial: Trial | int) -> int:
        """Return the number of a trial. Raises InvalidInput for a trial of another study."""
        if not isinstance(trial, Trial):
            return to_int("trial", trial)
        if trial.study != self.name:
            raise _foreign(trial, f"a trial of study {self.name!r}: this one belongs to study {trial.study!r}")
        if trial.study_uid and self.uid and trial.study_uid != self.uid:
            raise _foreign(
                trial, f"a trial of this study: this one belongs to another study that had the name {self.name!r}"
            )
        return trial.number


def _foreign(trial: Trial, allowed: str) -> InvalidInput:
    found = InvalidInput.of("trial", f"{trial.study}/{trial.number}", allowed)
    found.code = "trial_of_another_study"
    return found
