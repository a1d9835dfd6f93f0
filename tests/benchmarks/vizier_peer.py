"""OSS Vizier under the same load; run by ask_tell.py in an environment of its own: TRIALS REPETITIONS CLIENTS..."""

import json
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

from vizier.service import clients, servers
from vizier.service import pyvizier as vz


def _config() -> vz.StudyConfig:
    config = vz.StudyConfig(algorithm="RANDOM_SEARCH")
    config.search_space.root.add_float_param("x", 0.0, 1.0)
    config.search_space.root.add_float_param("y", 0.0, 1.0)
    config.metric_information.append(vz.MetricInformation("loss", goal=vz.ObjectiveMetricGoal.MINIMIZE))
    return config


def _rate(count: int, trials: int) -> float:
    """Round trips a second of `count` clients in a new study."""
    name = uuid.uuid4().hex
    mine = [clients.Study.from_study_config(_config(), owner="bench", study_id=name) for _ in range(count)]

    def work(index: int) -> None:
        for _ in range(trials // count):
            (trial,) = mine[index].suggest(count=1, client_id=f"client-{index}")
            trial.complete(vz.Measurement({"loss": float(trial.parameters["x"])}))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(count)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return trials // count * count / (time.monotonic() - began)


def main() -> None:
    trials, repetitions, *counts = (int(argument) for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        server = servers.DefaultVizierServer(database_url=f"sqlite:///{Path(folder) / 'vizier.db'}")
        clients.environment_variables.server_endpoint = server.endpoint
        _rate(1, 10)
        rates = {count: [_rate(count, trials) for _ in range(repetitions)] for count in counts}
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
