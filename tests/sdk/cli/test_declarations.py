"""Parameters that the command line declares, as in a study file."""

import pytest

from trimtab.cli.configuration import parse_declarations
from trimtab.errors import InvalidInput
from trimtab.space import Bool, Int, condition


def test_a_declared_parameter_has_its_range_default_and_condition() -> None:
    text = (
        'depth={"type": "int", "min": 1, "max": 9, "default": 3, "condition": {"parent": "alg", "values": ["a", "b"]}}'
    )
    depth, huge = parse_declarations([text, 'huge={"type": "boolean"}'])
    assert isinstance(depth, Int)
    assert (depth.name, depth.min, depth.max, depth.default) == ("depth", 1, 9, 3)
    assert condition(depth) == ("alg", ("a", "b"))
    assert isinstance(huge, Bool)
    assert condition(huge) is None


@pytest.mark.parametrize(
    "item",
    [
        "depth",
        "depth=",
        "depth=[1]",
        'depth={"min": 1}',
        'depth={"type": "integer"}',
        'depth={"type": "int", "low": 1}',
    ],
)
def test_a_declaration_that_cannot_be_read_is_refused(item: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_declarations([item])
    assert item in str(caught.value)
