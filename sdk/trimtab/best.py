"""The settings that a study recommends, ready to use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.values import from_values, to_value
from trimtab.context import ContextRow
from trimtab.errors import InvalidInput
from trimtab.space import Params

if TYPE_CHECKING:
    from trimtab._internal.study.handle import StudyHandle
    from trimtab._internal.study.results import KeptTable

# The table is read again after this time.
TABLE_SECONDS = 60.0
FORMATS = ("env", "set", "yaml", "json", "template", "command")


@dataclass(frozen=True)
class Rendered:
    """Settings in one form. `str(rendered)` is the text.

    `files` has the text of each file that the component renders, by its name; of several files, `text` has none.
    `notes` are sentences for people, and `params` the values.
    """

    text: str
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    params: Params = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text

    def write(self, folder: "str | Path") -> list[Path]:
        """Write the files into a folder, which must exist, and return their paths.

        Raises:
            InvalidInput: there is no file in this form.
            OSError: a file cannot be written.
        """
        if not self.files:
            raise InvalidInput.of("format", None, "the form template of a component that has templates")
        written = []
        for name, text in self.files.items():
            # The names come from the service.
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise InvalidInput.of("files", name, "a path inside the folder")
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            written.append(path)
        return written


class Best:
    """The settings that a study recommends. `study.best` returns it."""

    def __init__(self, study: "StudyHandle", table: "KeptTable") -> None:
        self._study = study
        self._table = table

    def __call__(self, context: Mapping[str, object], *, max_age: float = TABLE_SECONDS) -> ContextRow:
        """Return the recommendation in a context: the settings to use, and the verdict on the best ones.

            settings = study.best({"load": "high", "hit": 0.83}).settings

        The settings are the default where no gain is proven. A number belongs to the nearest value of the table. The
        table is kept in memory: after the first call, a lookup takes microseconds. If the table is older than `max_age`
        seconds, a thread fetches a new one, and this call still answers from the old one.

        Raises:
            InvalidInput: a variable is unknown or missing, or its value is not in the table; `data["field"]` names it.
        """
        return self._table.lookup(context, max_age)

    def render(
        self,
        format: str = "env",  # noqa: A002 - the word of the other clients
        *,
        trial: int | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Rendered:
        """Return the settings in the form in which the program takes them.

            print(study.best.render("command"))

        The component of a study on agents says how values reach its program. Without one, each parameter is written by
        its name.

        Args:
            format: `env` (variables), `set` (options of `trimtab-agent try`), `yaml`, `json`, `template` (the file that
                the component renders, such as redis.conf) or `command`.
            trial: the number of a trial whose values are meant, for example one of the Pareto set; None: those that
                the study recommends.
            context: the present value of each context variable of a study that has some, as in `best(context)`.

        Raises:
            InvalidInput: the component has no such form (`no_such_form`), or a value is not allowed.
            NotFound: no trial is COMPLETED yet (`no_completed_trial`), or there is no such trial.
            Conflict: the study has several objectives (`several_objectives`) or needs a context (`several_contexts`).
        """
        if format not in FORMATS:
            raise InvalidInput.of("format", format, f"one of {', '.join(FORMATS)}")
        if trial is not None and (isinstance(trial, bool) or not isinstance(trial, int) or not 0 < trial < 2**31):
            raise InvalidInput.of("trial", trial, "the number of a trial")
        row = self(context).context if context else {}
        request = pb.RenderSettingsRequest(
            study=self._study.name,
            format=format,
            trial=trial or 0,
            context={name: to_value(f"context.{name}", value) for name, value in row.items()},
        )
        answer = self._study.call(self._study.stub.RenderSettings, request)
        values = from_values(answer.params)
        names = [parameter.name for parameter in self._study.spec.space]
        return Rendered(
            answer.text,
            {name: answer.files[name] for name in sorted(answer.files)},
            tuple(answer.notes),
            {name: values[name] for name in (*names, *sorted(values.keys() - {*names})) if name in values},
        )
