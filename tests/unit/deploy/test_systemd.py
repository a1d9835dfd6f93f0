"""The unit of systemd for the agent."""

from tests.run import ROOT
from trimtab_agent.runners.cgroups import INNER


def test_the_agent_knows_the_group_that_systemd_starts_it_in() -> None:
    """In another group it would find no place for the groups of its trials."""
    lines = (ROOT / "deploy" / "systemd" / "trimtab-agent.service").read_text().splitlines()
    assert f"DelegateSubgroup={INNER}" in lines
