"""The errors that the agent raises on purpose."""

from collections.abc import Sequence

from trimtab_components.errors import Problem


class AgentError(Exception):
    """The base class. `str(error)` is a sentence that an administrator can act on, and `code` is for programs."""

    code = "agent_failed"


class ConfigError(AgentError):
    """A command-line option, or a file that it names, cannot be used."""

    code = "invalid_option"


class ComponentError(AgentError):
    """Component files cannot be used. `problems` holds all errors in them."""

    code = "invalid_component"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class NotAcceptedError(AgentError):
    """The scheduler refuses the job, and would refuse other configurations too."""

    code = "job_refused"


class SchedulerAwayError(AgentError):
    """The scheduler has not answered in time."""

    code = "scheduler_unavailable"


class PolicyError(AgentError):
    """The administrator's policy forbids it. The message names the rule."""

    code = "forbidden_by_policy"


class JournalError(AgentError):
    """The state directory cannot be used."""

    code = "state_unusable"


class CallError(AgentError):
    """A call to the service failed. `code` is the service's stable code, or else the gRPC status."""

    def __init__(self, call: str, code: str, message: str) -> None:
        self.call = call
        self.code = code
        super().__init__(f"{call}: {message} ({code})")


class ServiceAwayError(CallError):
    """The service cannot answer now. The same call may succeed later."""


class CredentialsError(CallError):
    """The token is wrong or lacks a right. An administrator can correct this, so results are kept."""


class UnknownAgentError(CallError):
    """The service does not know this agent: it must register again."""


class CallRefusedError(CallError):
    """The service refuses the call for good."""


class InvalidReportError(CallRefusedError):
    """The service finds an error in the request. It has changed nothing."""


class NotForJobsError(AgentError):
    """A component's settings cannot be applied to a job that somebody has submitted. The message says why."""

    code = "not_for_jobs"
