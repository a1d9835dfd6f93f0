"""Everything that the agent raises on purpose."""

from collections.abc import Sequence
from dataclasses import dataclass


class AgentError(Exception):
    """The root. `str()` of it is a sentence that an administrator can act on."""


class ConfigError(AgentError):
    """A command-line option, or a file that one names, cannot be used."""


@dataclass(frozen=True)
class Problem:
    """One fault of a component file: where it stands, and what is allowed there. Lines and columns count from 1;
    `length` is that of what is at fault where it is in one line, else 0."""

    file: str
    line: int
    field: str
    message: str
    column: int = 1
    length: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.field}: {self.message}"


class ComponentError(AgentError):
    """Component files cannot be used; holds every problem that was found, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class UnsuitableValueError(AgentError):
    """A value that the component's file does not allow: the configuration is at fault."""


class NotInComponentError(AgentError):
    """The lease names a component, application, parameter or metric that this agent does not have: not the
    configuration's fault."""


class NotAcceptedError(AgentError):
    """The scheduler does not take the job, and would not take another configuration's either."""


class SchedulerAwayError(AgentError):
    """The scheduler has not answered for as long as somebody was willing to wait."""


class PolicyError(AgentError):
    """The administrator's policy is against it; the message names the rule."""


class JournalError(AgentError):
    """The state directory cannot be used."""


class CallError(AgentError):
    """A call to the service failed. `code` is the service's stable code, or the gRPC status where it gave none."""

    def __init__(self, call: str, code: str, message: str) -> None:
        self.call = call
        self.code = code
        super().__init__(f"{call}: {message} ({code})")


class ServiceAwayError(CallError):
    """The service cannot be reached or is not able to answer now; the same call later may succeed."""


class CredentialsError(CallError):
    """The token is wrong or lacks a right. An administrator can mend it, so results are kept."""


class UnknownAgentError(CallError):
    """The service does not know this agent (any longer): it has to register again."""


class CallRefusedError(CallError):
    """The service's final answer is no."""


class InvalidReportError(CallRefusedError):
    """The service finds the request itself wrong; nothing has changed there."""
