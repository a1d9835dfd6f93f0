"""A process that has died loses its trials to another client; one that lives keeps them."""

import subprocess
import sys

import trimtab
from tests.factories.patience import wait_for
from tests.factories.service import EmbeddedService
from tests.sdk.conftest import make_study

# The shortest lease.
LEASE = 10.0
ASK = """
import sys, time
import trimtab
study = trimtab.Client(sys.argv[1], sys.argv[2], client_id="dead").get_study(sys.argv[3])
print(study.ask(lease=10)[0].number, flush=True)
time.sleep(3600)
"""


def test_the_trial_of_a_dead_process_goes_to_another_client_and_a_living_one_keeps_its_own(
    embedded_service: EmbeddedService, client: trimtab.Client, name: str
) -> None:
    study = make_study(client, name)
    [kept] = study.ask(lease=LEASE)
    arguments = [sys.executable, "-c", ASK, embedded_service.grpc_address, embedded_service.token, name]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        number = int(process.stdout.readline())
        process.kill()
    # The living client has asked first, so its lease would end first.
    wait_for(lambda: study.trial(number).state == "REQUESTED")
    mine = study.trial(kept.number)
    assert (mine.state, mine.attempt) == ("ACTIVE", 1)
    [taken] = study.ask(lease=LEASE)
    assert (taken.number, taken.attempt) == (number, 2)
    assert study.tell(taken, 2.0).state == "COMPLETED"
    assert study.tell(kept, 1.0).state == "COMPLETED"
