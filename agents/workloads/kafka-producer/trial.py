"""Send events to a new Kafka broker with these settings of the producer, check them, and print what it cost as JSON.

    python3 trial.py [NAME=VALUE ...]

60,000 JSON events of about 350 bytes go to a topic with three partitions, as fast as the producer can. Every event is
acknowledged by all replicas, and none may be sent twice (`acks=all`, `enable.idempotence=true`). Afterwards a consumer
reads them all, and each is compared with what was sent.
"""

import json
import random
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

LIB = Path(__file__).resolve().parent / "lib"
EVENTS, KINDS, PARTITIONS, SEED = 60_000, 30_000, 3, 1
TOPIC, CLUSTER = "events", "dHJpbXRhYi10cmlhbC0wMQ"
PACKAGE = "the Debian package openjdk-17-jre-headless"
SAFE = ("acks=all", "enable.idempotence=true")
FOUND = re.compile(
    rf"^{EVENTS} records sent, (?P<rate>[\d.]+) records/sec .*?, "
    r"(?P<mean>[\d.]+) ms avg latency.*?(?P<p99>\d+) ms 99th",
    re.MULTILINE,
)


def java(name: str, *arguments: str | Path, memory: str = "256m") -> list[str | Path]:
    """Return the command of a class of Kafka."""
    if not LIB.exists():
        raise bench.MachineError(f"Kafka is missing. Run python3 {LIB.parent / 'prepare.py'}")
    options = [f"-Xmx{memory}", "-Xshare:auto", "-XX:+UseSerialGC", "-Dslf4j.internal.verbosity=ERROR"]
    return [bench.program("java", PACKAGE), *options, "-cp", f"{LIB}/*", name, *arguments]


def events() -> list[str]:
    """Return events with the fields of a shop's log; much of their text is alike."""
    draw = random.Random(SEED)
    pages = [f"/products/{draw.randrange(400)}/{name}" for name in ("view", "cart", "buy", "reviews")]
    return [
        json.dumps(
            {
                "id": number,
                "time": f"2026-01-01T{draw.randrange(24):02}:{draw.randrange(60):02}:{draw.randrange(60):02}.000Z",
                "user": f"user-{draw.randrange(5000):05}",
                "session": f"{draw.randrange(16**12):012x}",
                "page": draw.choice(pages),
                "agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML) Chrome/126.0 Safari/537.36",
                "country": draw.choice(["de", "fr", "us", "in", "br"]),
                "milliseconds": draw.randrange(10, 900),
                "price": draw.randrange(100, 90_000) / 100,
            }
        )
        for number in range(KINDS)
    ]


def broker_file(folder: Path, port: int, controller: int) -> Path:
    """Write the settings of a broker that is its own controller."""
    path = folder / "broker.properties"
    path.write_text(
        f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={folder / "log"}
num.partitions={PARTITIONS}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
"""
    )
    return path


def send(address: str, settings: dict[str, str], payload: Path) -> tuple[bench.Done, re.Match[str]]:
    """Send the events, and return the producer's end and its own figures."""
    words = [f"{name}={value}" for name, value in settings.items()]
    arguments = ["--topic", TOPIC, "--num-records", str(EVENTS), "--throughput", "-1", "--payload-file", payload]
    command = java("org.apache.kafka.tools.ProducerPerformance", *arguments, "--producer-props", *SAFE, *words)
    done = bench.run([*command, f"bootstrap.servers={address}"])
    text = done.output.decode(errors="replace")
    found = FOUND.search(text)
    if found is None:
        raise bench.WrongError(f"the producer has not sent {EVENTS} events:\n{text[-1000:]}")
    return done, found


def check(address: str, kinds: Sequence[str]) -> None:
    """Count the events of the topic, read all of them, and compare each with those that were sent."""
    of_topic = ["--bootstrap-server", address, "--topic", TOPIC]
    ends = bench.run(java("org.apache.kafka.tools.GetOffsetShell", *of_topic)).output.decode().split()
    bench.expect(sum(int(end.rpartition(":")[2]) for end in ends), EVENTS, "the number of events in the topic")
    reading = ["--from-beginning", "--max-messages", str(EVENTS), "--timeout-ms", "60000"]
    command = java("org.apache.kafka.tools.consumer.ConsoleConsumer", *of_topic, *reading)
    read = bench.run(command).output.decode().splitlines()
    bench.expect(len(read), EVENTS, "the number of events that were read")
    if unknown := set(read) - set(kinds):
        raise bench.WrongError(f"the topic has an event that was not sent: {unknown.pop()[:200]}")


def measure() -> dict[str, float]:
    """Start a broker, send the events, and read them back."""
    with tempfile.TemporaryDirectory(prefix="kafka-") as place:
        folder = Path(place)
        port, controller = bench.free_port(), bench.free_port()
        settings, address = broker_file(folder, port, controller), f"127.0.0.1:{port}"
        kinds = events()
        payload = folder / "events.json"
        payload.write_text("\n".join(kinds) + "\n")
        bench.run(java("kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER, "--config", settings))
        command = java("kafka.Kafka", settings, memory="512m")
        with bench.server(command, ready=lambda: bench.listens(port)) as broker:
            topic = ["--bootstrap-server", address, "--create", "--topic", TOPIC, "--partitions", str(PARTITIONS)]
            bench.run(java("org.apache.kafka.tools.TopicCommand", *topic))
            before = broker.cpu_seconds()
            done, found = send(address, bench.settings(), payload)
            spent = broker.cpu_seconds() - before
            stored = sum(one.stat().st_size for one in folder.glob(f"log/{TOPIC}-*/*.log"))
            check(address, kinds)
    return {
        "latency_ms": float(found["mean"]),
        "p99_ms": float(found["p99"]),
        "events_per_second": float(found["rate"]),
        "broker_cpu_us": 1e6 * spent / EVENTS,
        "producer_cpu_us": 1e6 * done.cpu_seconds / EVENTS,
        "stored_bytes": stored / EVENTS,
    }


if __name__ == "__main__":
    bench.main(measure)
