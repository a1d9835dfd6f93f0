"""Read a study file with the service's help, and create the study that it describes."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import trimtab
from trimtab.errors import InvalidInput, NotFound
from trimtab.spec import StudySpec

if TYPE_CHECKING:
    from trimtab.study import Study


@dataclass(frozen=True)
class StudyFile:
    """A study file as the service has read it. `name` is None where the file gives none."""

    name: str | None
    spec: StudySpec

    def made_up_name(self) -> str:
        """Return a name from the component, the application and the time."""
        time = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
        # A study's name has at most 63 characters.
        return self.subject()[: 63 - len(time) - 1] + "-" + time

    def subject(self) -> str:
        """Return the component and the application, joined by a hyphen."""
        run = self.spec.execution
        return "-".join(filter(None, (run.component, run.application))) if run is not None else "study"


def load(client: "trimtab.Client", path: Path, name: str | None = None) -> StudyFile:
    """Return what a study file says. `name` is the study's where it is not the file's.

    Raises:
        InvalidInput: the file cannot be read, or the service refuses it; the message has the file and the line.
        NotFound: no agent offers the component.
    """
    try:
        text = path.read_text()
    except OSError as error:
        raise InvalidInput("unreadable_file", f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput("unreadable_file", f"{path} is not a text in UTF-8.") from error
    try:
        own, spec = client.parse_study_file(text, name=name or "")
    except (InvalidInput, NotFound) as error:
        line = error.data.get("line")
        place = f"{path}:{line:.0f}" if isinstance(line, int | float) else f"{path}"
        raise type(error)(error.code, f"{place}: {error.message}", data=error.data) from error
    return StudyFile(own, spec)


def create(client: "trimtab.Client", file: StudyFile, *, name: str | None, load_if_exists: bool) -> "Study":
    """Create the study of `file`. Its name is `name`, else the name in the file, else a generated one.

    Raises:
        TrimtabError: as in `Client.create_study`.
    """
    return client.create_from_spec(name or file.name or file.made_up_name(), file.spec, load_if_exists=load_if_exists)
