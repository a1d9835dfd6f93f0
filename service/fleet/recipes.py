"""Settings ready to use: the values that a study recommends, in the form in which its program takes them.

An agent sends with each component how values reach the program (its recipe). The service keeps it, so that settings can
be rendered also when no agent offers the version any more. The same package renders them as for a trial
(`trimtab_components`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.core.errors import Conflict, InvalidInput, JsonValue, NotFound
from service.core.space import Configuration
from service.fleet.models import Recipe
from service.results.analysis import Analysis, analyse
from service.studies import selectors
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from trimtab_components import recipe
from trimtab_components.errors import NotInComponentError, UnsuitableValueError
from trimtab_components.formats import Format, NoSuchFormError, Rendered, render
from trimtab_components.schema import Component

# The longest recipe, in characters. An agent sends no longer one.
LONGEST = 256 * 1024
# The most recipes of a tenant. Beyond it the oldest ones go.
MOST = 1000
FORMATS = ", ".join(Format)


@dataclass(frozen=True, slots=True)
class Settings:
    """The values that a study recommends, and their form. `component` says whether a component has rendered them."""

    params: Configuration
    rendered: Rendered
    component: bool


def keep(principal: Principal, components: Mapping[tuple[str, str], str]) -> None:
    """Store the recipes of an agent's components by name and digest. An empty one changes nothing."""
    sent = {key: text for key, text in components.items() if text and len(text) <= LONGEST and "\0" not in text}
    if not sent:
        return
    names = {name for name, _ in sent}
    kept = access.rows(Recipe, principal)
    known = {(one.name, one.digest): one for one in kept.filter(name__in=names)}
    for (name, digest), text in sent.items():
        found = known.get((name, digest))
        if found is None:
            access.add_missing(principal, Recipe(name=name[:63], digest=digest[:64], text=text))
        elif found.text != text:
            found.text = text
            access.save(principal, found, "text")
    over = kept.count() - MOST
    if over > 0:
        oldest = list(kept.order_by("sent_at", "pk").values_list("pk", flat=True)[:over])
        kept.filter(pk__in=oldest).delete()


def settings(
    principal: Principal, name: str, form: str, *, trial: int = 0, context: Mapping[str, object] | None = None
) -> Settings:
    """Return the recommended values of a study in a form, or those of one trial.

    Args:
        principal: the caller.
        name: the name of the study.
        form: one of `trimtab_components.formats.Format`.
        trial: the number of a trial; 0: what the study recommends.
        context: the values of the context variables of a study that has some.

    Raises:
        InvalidInput: an unknown form, a context that the study does not have, or a form that the component does not
            have (`no_such_form`).
        NotFound: no study, no trial, or no result yet (`no_completed_trial`).
        Conflict: the study has several objectives (`several_objectives`) or contexts (`several_contexts`).
    """
    study = selectors.get_study(principal, name)
    if form not in set(Format):
        raise InvalidInput("format", form, f"one of {FORMATS}")
    around, values = _values(principal, study, trial, context or {})
    component = _component(principal, study)
    if Format(form) in (Format.JSON, Format.YAML, Format.SET):
        return Settings(values, render(Format(form), values, None), component is not None)
    try:
        rendered = render(Format(form), {**around, **values}, component, study.application)
    except NoSuchFormError as error:
        raise _no_such_form(form, str(error)) from None
    except (NotInComponentError, UnsuitableValueError) as error:
        raise _no_such_form(form, f"The values do not fit the component: {error}.") from None
    return Settings(values, rendered, component is not None)


def _no_such_form(form: str, message: str) -> InvalidInput:
    return InvalidInput("format", form, f"one of {FORMATS}", message=message, code="no_such_form")


def _component(principal: Principal, study: Study) -> Component | None:
    """Return the version of the component that the study measures; None if no agent has sent how to use it.

    A study that names no version has measured the one that agents had when its last trial ended.
    """
    if not study.component:
        return None
    sent = access.rows(Recipe, principal).filter(name=study.component)
    if study.digest:
        found = sent.filter(digest=study.digest).first()
    else:
        ended = access.rows(Trial, principal).filter(study_id=study.pk, finished_at__isnull=False)
        last = ended.order_by("-finished_at").values_list("finished_at", flat=True).first()
        known = sent.order_by("-sent_at", "-pk")
        found = known.first() if last is None else known.filter(sent_at__lte=last).first() or known.last()
    return None if found is None else recipe.read(found.text)


def _values(
    principal: Principal, study: Study, trial: int, given: Mapping[str, object]
) -> tuple[Configuration, Configuration]:
    """Return the context, and the values to use in it."""
    problem = spec_of(study).problem
    if trial:
        found = selectors.trial_of(principal, study.name, trial).params
        return problem.context.of(found), problem.context.settings(found) if problem.context else found
    analysis = analyse(principal, study)
    if problem.context:
        return _in_context(study, analysis, given)
    if given:
        raise InvalidInput("context", dict(given), f"no context: study {study.name} has none")
    if len(problem.objectives) > 1:
        raise Conflict(
            "several_objectives",
            f"Study {study.name} has {len(problem.objectives)} objectives, so no single configuration is the best. Give"
            " the number of a trial of its Pareto set.",
        )
    if analysis.verdict is None:
        raise NotFound("no_completed_trial", f"Study {study.name} has no completed trial yet.")
    return {}, analysis.verdict.configuration


def _in_context(study: Study, analysis: Analysis, given: Mapping[str, object]) -> tuple[Configuration, Configuration]:
    problem = spec_of(study).problem
    shown: dict[str, JsonValue] = {name: str(value) for name, value in given.items()}
    if not given:
        raise Conflict(
            "several_contexts",
            f"The settings of study {study.name} depend on the context. Give a value of each of"
            f" {', '.join(problem.context.names)}.",
        )
    wanted = problem.context.check(given, problem.space)
    for row in analysis.contexts:
        if row.context == wanted:
            return row.context, row.settings
    known = "; ".join(", ".join(f"{name}={value}" for name, value in row.context.items()) for row in analysis.contexts)
    raise InvalidInput("context", shown, f"one of the contexts of the table: {known}")
