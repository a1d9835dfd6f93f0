"""Run reports of Apache Spark with these settings, check their rows, and print what they cost as JSON.

    python3 trial.py build FOLDER                          once: the tables, and checksums of the answers with defaults
    python3 trial.py sales|sessions FOLDER [NAME=VALUE ...]

Spark runs with two threads in one process. Each query runs once unmeasured, because a new Java virtual machine first
interprets code, and then three times. Settings are those of Spark's configuration.
"""

import importlib.util
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

ROWS, CUSTOMERS, PRODUCTS = 400_000, 20_000, 500
MEASURED = 3
JAVA = "the Debian package openjdk-17-jre-headless"
FIXED = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}
# Whole numbers alone, so that no order of additions changes an answer.
SALES = """
    select id, pmod(hash(id), {customers}) as customer, pmod(hash(id, 1), {products}) as product,
           pmod(hash(id, 2), 1000) as cents, pmod(hash(id, 3), 31536000) as second,
           concat('order ', id, ' of the shop') as note
    from range({rows})
"""
CUSTOMER = """
    select id as customer, pmod(hash(id, 4), 40) as region, concat('customer ', id) as name from range({customers})
"""
QUERIES = {
    "sales": (
        """select region, int(second / 86400) as day, count(*), sum(cents), count(distinct product)
           from sales join customer using (customer) group by region, day""",
        """select * from (
             select region, customer, sum(cents) as total,
                    rank() over (partition by region order by sum(cents) desc, customer) as place
             from sales join customer using (customer) group by region, customer
           ) where place <= 10""",
    ),
    "sessions": (
        """select customer, count(*) as sessions, max(orders), max(spent) from (
             select customer, session, count(*) as orders, sum(cents) as spent from (
               select customer, cents, sum(if(gap > 604800, 1, 0)) over (partition by customer order by second, id)
                      as session
               from (select *, second - lag(second, 1, 0) over (partition by customer order by second, id) as gap
                     from sales)
             ) group by customer, session
           ) group by customer""",
        """select a.product, b.product as other, count(*) as times
           from sales a join sales b on a.customer = b.customer and a.product < b.product
           where a.cents >= 700 and b.cents >= 700 group by a.product, b.product having count(*) >= 4""",
    ),
}


def configuration(settings: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return the whole configuration: the settings, and what no setting changes."""
    folders = {"spark.local.dir": str(scratch), "spark.sql.warehouse.dir": str(scratch / "warehouse")}
    return {**settings, **FIXED, **folders}


def session(settings: Mapping[str, str], scratch: Path) -> Any:
    """Start Spark. Raise MachineError if it is not installed, and WrongError if it refuses a setting."""
    bench.program("java", JAVA)
    if importlib.util.find_spec("pyspark") is None:
        raise bench.MachineError(f"{sys.executable} has no module pyspark. Install the Python package pyspark.")
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in configuration(settings, scratch).items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Py4JError as error:
        raise bench.WrongError(f"Spark does not start: {str(error)[-bench.MESSAGES :]}") from None


def build(folder: Path) -> None:
    """Write the tables, and the checksum of each answer with the defaults."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {"rows": ROWS, "customers": CUSTOMERS, "products": PRODUCTS}
    with tempfile.TemporaryDirectory() as scratch:
        spark = session({}, Path(scratch))
        for name, text in {"sales": SALES, "customer": CUSTOMER}.items():
            spark.sql(text.format(**sizes)).repartition(4).write.mode("overwrite").parquet(str(folder / name))
        attach(spark, folder)
        for name, queries in QUERIES.items():
            for place, query in enumerate(queries):
                (folder / f"{name}-{place}.sum").write_text(checksum(spark.sql(query).collect()))
        spark.stop()


def attach(spark: Any, folder: Path) -> None:
    """Give the tables their names."""
    for name in ("sales", "customer"):
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)


def checksum(rows: Iterable[Iterable[object]]) -> str:
    """Return a checksum of the rows, whose order does not count."""
    return bench.checksum(sorted("\t".join(map(str, row)) for row in rows))


def measure() -> dict[str, float]:
    """Run the queries of the application that the first argument names."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as scratch:
        spark = session(bench.settings(), Path(scratch))
        try:
            attach(spark, folder)
            return timed(spark, name, folder)
        finally:
            spark.stop()


def timed(spark: Any, name: str, folder: Path) -> dict[str, float]:
    """Return the costs of one pass over the queries: CPU time of Spark's process, and time."""
    machine = bench.Server(spark.sparkContext._gateway.proc)
    cpu = seconds = 0.0
    for turn in range(1 + MEASURED):
        for place, query in enumerate(QUERIES[name]):
            spent, began = machine.cpu_seconds(), time.perf_counter()
            rows = spark.sql(query).collect()
            if turn:
                cpu += machine.cpu_seconds() - spent
                seconds += time.perf_counter() - began
            wanted = (folder / f"{name}-{place}.sum").read_text()
            bench.expect(checksum(rows), wanted, f"the checksum of answer {place} of {name}")
    return {"cpu_seconds": cpu / MEASURED, "seconds": seconds / MEASURED}


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]))
    else:
        bench.main(measure)
