"""`trimtab tune`: submit a study to the agents and follow it."""

import time
from pathlib import Path
from typing import Annotated

import typer

import trimtab
from trimtab import predictions, similar
from trimtab.cli import output
from trimtab.cli.following import TIMED_OUT, follow, interrupted
from trimtab.cli.results import say_start
from trimtab.cli.study_json import result_json, study_json
from trimtab.cli.submission import create, load
from trimtab.errors import Conflict, InvalidInput, Timeout

_ENDED = "The study has ended before it was compared with earlier studies."

EXAMPLES = """Example of a file:

    component: gcc-flags
    application: kernels
    objectives: [{minimize: seconds, unit: s}]
    budget: {max_trials: 30, max_time: 10m}
    pruning: [default]                        # stop trials that take longer than the default
    final_check: {width: 0.02}                # at the end, measure the gain until its interval is so narrow
    parameters: {inline-limit: {max: 400}}    # change ranges of the component
    only: [inline-limit, loop-unrolling]      # other parameters stay at their defaults
    start_from: [flags-1]                     # first measure the best of an earlier study

Examples:

`trimtab tune flags.yaml`

`trimtab tune flags.yaml --name flags-2 --detach`

`trimtab tune flags.yaml --timeout 3600`

`trimtab tune reads.yaml --model model.py`

`trimtab tune reads.yaml --similar`
"""


def tune(
    file: Annotated[Path, typer.Argument(help="A study file, YAML or JSON.", exists=True, dir_okay=False)],
    name: Annotated[str | None, typer.Option(help="The study's name. It replaces the name in the file.")] = None,
    load_if_exists: Annotated[
        bool, typer.Option("--load-if-exists", help="Continue the study of this name if it exists.")
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the study's name and do not wait.")] = False,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A Python file with `predict(configuration, context)`. It runs on this machine, and the configuration"
            " that it predicts to be best is measured early.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    like_earlier: Annotated[
        bool,
        typer.Option(
            "--similar",
            help="Wait for the first run of the default. Then measure early the best configurations of three earlier"
            " studies of the component whose default had the most similar metrics.",
        ),
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0.0, help="Seconds after which the command ends. The study continues.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result (with --detach: the study) as JSON.")
    ] = False,
) -> None:
    """Tune a component on the agents, as a study file describes.

    The command shows a progress bar with the best single run so far, then the verdict. While nothing runs, it says
    why: the study is paused, or no agent fits or is free. Ctrl-C does not stop the study.

    Exit codes: 0 if the study is COMPLETED with a result, 1 if it is not or if an error occurs, 124 after --timeout,
    130 after Ctrl-C.
    """
    with trimtab.Client() as client:
        described = load(client, file, name)
        if described.spec.execution is None:
            raise InvalidInput.of("component", None, "a component that an agent offers: see `trimtab agent list`")
        predict = None if model is None else predictions.load(model)
        if predict is not None:
            predictions.check(described.spec)
        if like_earlier:
            similar.check(described.spec)
        study = create(client, described, name=name, load_if_exists=load_if_exists)
        say_start(study)
        if predict is not None:
            trial = predictions.enqueue_best(study, predict)
            said = "The model predicts nothing." if trial is None else f"The model's best is trial {trial.number}."
            output.say(said)
        if not any(agent.online for agent in client.list_agents()):
            output.say("No agent is online. The study starts when an agent connects.")
        left = _begin_like_earlier(client, study, timeout) if like_earlier else timeout
        if detach:
            if as_json:
                output.print_json(study_json(study))
            else:
                output.echo(study.name)
            return
        output.say(f"Study {study.name}")
        if not as_json:
            follow(study, timeout, left=left)
            return
        code = 0
        try:
            state = study.wait(left, progress=False)
        except Timeout:
            state, code = study.state, TIMED_OUT
        result = result_json(study)
        output.print_json({**study_json(study), **result})
        if code == 0 and (state is not trimtab.StudyState.COMPLETED or not result["best"]):
            code = 1
        if code:
            raise typer.Exit(code)


def _begin_like_earlier(client: "trimtab.Client", study: "trimtab.Study", timeout: float | None) -> float | None:
    """Enqueue what the most similar earlier studies have found, as soon as the default has a result.

    Return the seconds of the timeout that are left.
    """
    output.say("Waiting for the first run of the default, to compare it with earlier studies.")
    began = time.monotonic()
    try:
        if not any(_is_result_of_default(trial) for change in study.watch(timeout) for trial in change.trials):
            output.say(_ENDED)
            return timeout
    except Timeout:
        output.say("The default has no result yet, so the study is not compared with earlier ones.")
        return 0.0
    except KeyboardInterrupt:
        raise interrupted(study) from None
    _enqueue_like_earlier(client, study)
    return None if timeout is None else max(0.0, timeout - (time.monotonic() - began))


def _is_result_of_default(trial: trimtab.Trial) -> bool:
    return trial.origin == "default" and trial.state is trimtab.TrialState.COMPLETED


def _enqueue_like_earlier(client: "trimtab.Client", study: "trimtab.Study") -> None:
    described = study.spec.execution
    assert described is not None  # similar.check
    found = similar.neighbours(study, client.list_studies(component=described.component))
    try:
        trials = similar.enqueue_best(study, found)
    except Conflict:
        output.say(_ENDED)
        return
    if not trials:
        output.say("No earlier study of this component has a result to begin with.")
        return
    names = ", ".join(one.study for one in found)
    output.say(f"Trials {', '.join(str(one.number) for one in trials)} are the best configurations of {names}.")
