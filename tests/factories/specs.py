"""Random specs of studies that are valid, in their JSON form."""

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]
# Texts that YAML can hold without an escape.
texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"], include_characters="\n"), max_size=12
)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
numbers = st.integers(-(10**6), 10**6)
options = st.dictionaries(
    st.from_regex(r"[a-z_]{1,6}", fullmatch=True),
    st.recursive(
        st.none() | st.booleans() | numbers | st.sampled_from([0.5, -1.25]) | texts,
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=4,
    ).filter(lambda value: value is not None),
    max_size=3,
)
# Exact in the nanoseconds of a Duration.
seconds = st.integers(1, 10**6).map(lambda eighths: eighths / 8)
policies = st.fixed_dictionaries({"name": names, "options": options})


@st.composite
def parameters(draw: st.DrawFn, name: str) -> Json:
    """Draw a parameter with this name and a default."""
    kind = draw(st.sampled_from(["float", "int", "ordinal", "categorical", "bool"]))
    data: Json = {"name": name, "type": kind}
    if kind in ("float", "int"):
        convert = float if kind == "float" else int
        low = draw(st.integers(1, 1000))
        data |= {"min": convert(low), "max": convert(low + draw(st.integers(1, 1000))), "default": convert(low)}
        grids: list[Json] = [{}, {"log": True}, {"step": 0.5 if kind == "float" else 1}, {"factor": 2.0}]
        data |= draw(st.sampled_from(grids))
    elif kind == "bool":
        data["default"] = draw(st.booleans())
    else:
        values = draw(st.lists(st.text("abc", min_size=1) | numbers, min_size=1, max_size=5, unique=True))
        data |= {"values": values, "default": draw(st.sampled_from(values))}
    if draw(st.booleans()):
        data["unit"] = "MiB"
    return data


@st.composite
def specs(draw: st.DrawFn) -> Json:
    """Draw a spec. Each optional key is present or absent."""
    count = draw(st.integers(1, 4))
    data: Json = {
        "space": {"parameters": [draw(parameters(f"p{place}")) for place in range(count)]},
        "objectives": [{"metric": "loss", "goal": draw(st.sampled_from(["minimize", "maximize"]))}],
    }
    if draw(st.booleans()):
        data["objectives"][0]["unit"] = draw(st.sampled_from(["s", "MiB/s"]))
    if count > 1 and draw(st.booleans()):
        data["space"]["parameters"].append({"name": "load", "type": "categorical", "values": ["idle", "high", "off"]})
        data["context"] = [{"name": "load", "values": ["idle", "high"]}]
        if draw(st.booleans()):
            data["context"][0]["cheaper"] = ["off"]
    optional: dict[str, st.SearchStrategy[Any]] = {
        "algorithm": policies,
        "seed": st.integers(0, 2**63 - 1),
        "noisy": st.booleans(),
        "outcome_constraints": st.just(["memory_mb <= 4096"]),
        "resampling": policies,
        "estimator": policies,
        "pruning": st.lists(policies, max_size=3),
        "stopping": st.just({"rule": "plateau", "trials": 5}),
        "final_check": st.none()
        | st.fixed_dictionaries(
            {}, optional={"width": st.just(0.125), "max_trials": st.integers(1, 99), "level": st.just(0.9)}
        ),
        "stability": st.fixed_dictionaries(
            {},
            optional={
                "nodes": st.sampled_from([[1], [1, 3, 10], [2, 5]]),
                "times": st.sampled_from([3600, "24h", 0.5 * 86400]),
                "value": st.sampled_from([{"mean_plus": 0.5}, {"mean_plus": 2}]),
                "unstable": st.just(0.25),
                "adjust": st.sampled_from(["auto", "none"]),
            },
        ),
        "budget": st.fixed_dictionaries(
            {}, optional={"max_trials": st.integers(1, 10**9), "max_seconds": seconds, "max_node_hours": seconds}
        ),
        "start_from": st.lists(names, max_size=3, unique=True),
        "description": texts,
        "job": st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(("user", "name", "program", "command"), texts) | {"nodes": st.integers(1, 10**6)},
        ),
    }
    execution = st.fixed_dictionaries(
        {"component": st.just("gcc")},
        optional={
            "digest": st.just("ab" * 32),
            "application": texts,
            "parallelism": st.integers(1, 10_000),
            "trial_timeout_seconds": seconds,
            "placement": st.fixed_dictionaries({}, optional={"exclusive": st.booleans(), "spread": st.booleans()}),
        },
    )
    places: list[dict[str, st.SearchStrategy[Any]]] = [{}, {"execution": execution}, {"trial_timeout_seconds": seconds}]
    where = draw(st.sampled_from(places))
    found: Json = draw(st.fixed_dictionaries({}, optional=optional)) | draw(st.fixed_dictionaries(where))
    if "execution" not in found and draw(st.booleans()):
        data["space"]["parameters"][0]["optional"] = True
    return data | found
