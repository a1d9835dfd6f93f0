"""`python tracker_suite.py mlflow|wandb STUDY FOLDER`: copy a study to a real tracker, and print what it has.

The trackers are in an environment of their own (test_trackers.py). The service is at TRIMTAB_URL.
"""

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import trimtab

CONSOLE = "https://tune.example.org/"


def mlflow(study: trimtab.Study, folder: Path) -> object:
    from mlflow.tracking import MlflowClient

    from trimtab.integrations.mlflow import MlflowLogger

    uri = f"sqlite:///{folder}/mlflow.db"
    client = MlflowClient(tracking_uri=uri)

    def runs() -> list[dict[str, object]]:
        experiment = client.get_experiment_by_name(study.name)
        return [
            {
                "id": run.info.run_id,
                "name": run.info.run_name,
                "status": run.info.status,
                "params": run.data.params,
                "tags": {key: text for key, text in run.data.tags.items() if key.startswith("trimtab.")},
                "metrics": {
                    key: [(one.step, one.value) for one in client.get_metric_history(run.info.run_id, key)]
                    for key in run.data.metrics
                },
            }
            for run in client.search_runs([experiment.experiment_id])
        ]

    MlflowLogger(tracking_uri=uri, console=CONSOLE)(study, study.trials()[0])
    MlflowLogger(tracking_uri=uri, console=CONSOLE).follow(study)
    first = runs()
    # A program that ended in the middle of a trial leaves a run that is not terminated.
    client.update_run(str(first[0]["id"]), status="RUNNING")
    MlflowLogger(tracking_uri=uri, console=CONSOLE).follow(study)
    return {"first": first, "again": runs()}


def records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a file of wandb: a header of 7 bytes, then a log of LevelDB."""
    place, record = 7, b""
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + 7])
        record += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # the whole of a record, or its last part
            yield record
            record = b""


def wandb(study: trimtab.Study, folder: Path) -> object:
    from wandb.proto import wandb_internal_pb2 as pb

    from trimtab.integrations.wandb import COMPLETE, WandbLogger

    WandbLogger("tuning", folder=folder, mode="offline", console=CONSOLE)(study, study.trials()[0])
    WandbLogger("tuning", folder=folder, mode="offline", console=CONSOLE).follow(study)
    WandbLogger("tuning", folder=folder, mode="offline", console=CONSOLE).follow(study)
    runs = []
    for file in sorted((folder / "wandb").glob("offline-run-*/*.wandb")):
        run: dict[str, object] = {"complete": (file.parent / COMPLETE).exists()}
        history: list[dict[str, str]] = []
        summary: dict[str, str] = {}
        for data in records(file.read_bytes()):
            record = pb.Record()
            record.ParseFromString(data)
            if record.HasField("run"):
                config = {item.key: json.loads(item.value_json) for item in record.run.config.update}
                config.pop("_wandb", None)
                run |= {"group": record.run.run_group, "name": record.run.display_name, "params": config}
            elif record.HasField("history"):
                row = {
                    item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item
                }
                history.append({key: value for key, value in row.items() if not key.startswith("_") or key == "_step"})
            elif record.HasField("summary"):
                for item in record.summary.update:
                    summary[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
            elif record.HasField("exit"):
                run["exit"] = record.exit.exit_code
        runs.append({**run, "history": history, "summary": summary})
    return runs


if __name__ == "__main__":
    tracker, name, folder = sys.argv[1:]
    with trimtab.Client() as client:
        print(json.dumps({"mlflow": mlflow, "wandb": wandb}[tracker](client.get_study(name), Path(folder))))
