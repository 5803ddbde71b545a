"""The ledgers that the pages are opened over: a change that waits, a fleet of a thousand, and names that attack."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import (
    ApprovedEntry,
    BackfilledEntry,
    CheckedEntry,
    DeployedEntry,
    FailedEntry,
    JobStart,
    JobVersion,
    Origin,
    RejectedEntry,
    Review,
)
from airflow_flinkcompat.deploy.ledger.ledger import _encoded
from airflow_flinkcompat.deploy.ledger.listing import rebuild_index
from airflow_flinkcompat.deploy.target import JobRef
from airflow_flinkcompat.model import JobSpec
from dev.benchmarks.ledgers import history
from tests.support.airflow.plugin.ledgers import (
    Writing,
    fill_interrupted,
    fill_orders,
    fill_rejected,
    job,
    shadow_report,
    shadowed,
)

FLEET = 1000
DAGS = (
    "redeploy_orders",
    "redeploy_parcels",
    "redeploy_shared",
    "redeploy_revenue",
    "redeploy_loyalty",
    "redeploy_hostile",
)

REVENUE = """\
-- Revenue by shop and hour, for the dashboards of the shops.
CREATE TABLE orders (
  order_id STRING,
  shop STRING,
  customer STRING,
  price DECIMAL(10, 2),
  quantity INT,
  ordered_at TIMESTAMP(3),
  WATERMARK FOR ordered_at AS ordered_at - INTERVAL '30' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'group-offsets',
  'format' = 'json'
);

CREATE TABLE revenue (
  shop STRING,
  hour_start TIMESTAMP(3),
  turnover DECIMAL(38, 2),
  orders BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = 'revenue',
  'properties.bootstrap.servers' = 'kafka:9092',
  'format' = 'json'
);

CREATE TABLE customers_by_shop (
  shop STRING,
  customers BIGINT,
  PRIMARY KEY (shop) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'customers',
  'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO revenue
SELECT shop, window_start, SUM(price * quantity), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ordered_at), INTERVAL '1' HOUR))
GROUP BY shop, window_start, window_end;

INSERT INTO customers_by_shop
SELECT shop, COUNT(DISTINCT customer)
FROM orders
GROUP BY shop;
END;
"""
PROPOSED = (
    REVENUE.replace("INTERVAL '1' HOUR))", "INTERVAL '30' MINUTE))")
    .replace("SUM(price * quantity), COUNT(*)", "SUM(price * quantity), COUNT(order_id)")
    .replace("-- Revenue by shop and hour,", "-- Revenue by shop and half hour,")
)

LOYALTY = """\
-- Points of each customer, for the app.
CREATE TABLE bookings (
  booking_id STRING,
  customer STRING,
  points BIGINT,
  booked_at TIMESTAMP(3)
) WITH (
  'connector' = 'kafka',
  'topic' = 'bookings',
  'properties.bootstrap.servers' = 'kafka:9092',
  'format' = 'json'
);

CREATE TABLE points_by_customer (
  customer STRING,
  points BIGINT,
  level STRING,
  orders BIGINT,
  PRIMARY KEY (customer) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'points',
  'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

INSERT INTO points_by_customer
SELECT customer, SUM(points), CASE WHEN SUM(points) >= 1200 THEN 'gold' ELSE 'silver' END, COUNT(*)
FROM bookings
GROUP BY customer;
"""
SPENT = LOYALTY.replace("SUM(points)", "SUM(IF(points > 0, points, 0))")

HOSTILE = (
    "<script>window.attacked = 1</script>",
    "<img src=x onerror=window.attacked=2>",
    "\"><svg onload='window.attacked=3'>",
    "{{constructor.constructor('window.attacked=4')()}}",
    "javascript:window.attacked=5",
    "</textarea></style></title><iframe srcdoc='<script>parent.attacked=6</script>'>",
    "\u202eevil\u202c \u0000 \ufffe &lt;b&gt;",
    "${window.attacked=7}`+window.attacked+`",
)


def ago(**units: float) -> str:
    """A moment before now: what is shown of it is an age."""
    return (datetime.now(UTC) - timedelta(**units)).isoformat(timespec="milliseconds")


def fill(named: Path, fleet: Path, hostile: Path) -> None:
    """All ledgers."""
    fill_orders(named)
    fill_rejected(named, "redeploy_parcels", "parcels")
    fill_interrupted(named, "redeploy_shared", "shared")
    fill_rejected(named, None, "by-hand")
    fill_revenue(named)
    fill_loyalty(named)
    fill_hostile(hostile)
    fill_fleet(fleet)


def revenue(script: str) -> JobSpec:
    return JobSpec(script, engine="flink", engine_version="2.3.0", source="revenue.sql", settings={"state.ttl": "1 d"})


def fill_revenue(root: Path) -> Ledger:
    """A job of two queries, and a change to one of them that waits for a person."""
    at = Writing(root, "revenue", "redeploy_revenue")
    old, new = revenue(REVENUE), revenue(PROPOSED)
    start = JobStart("stateless", request_id="d" * 32, job_id=JobRef("e" * 32))
    at.put("deploy_first", DeployedEntry(job=old, start=start, evidence=("RUNNING for 10 s",)))
    at.run = 2
    at.check(old, new, "approve")
    return at.ledger


def fill_loyalty(root: Path) -> Ledger:
    """A change whose shadow run found differences, so that a person decides."""
    at = Writing(root, "loyalty", "redeploy_loyalty")
    old, new = (replace(revenue(script), source="loyalty.sql") for script in (LOYALTY, SPENT))
    start = JobStart("stateless", request_id="d" * 32, job_id=JobRef("e" * 32))
    at.put("deploy_first", DeployedEntry(job=old, start=start, evidence=("RUNNING for 10 s",)))
    at.run = 2
    review = at.check(old, new, "resume")
    report = shadow_report()
    report = replace(report, sinks=report.sinks[:1])
    at.put("shadow", shadowed(JobVersion.of(new), review, report))
    return at.ledger


def fill_hostile(root: Path) -> Ledger:
    """Every text that a ledger takes from outside is an attack."""
    at = Writing(root, "x-hostile", "redeploy_hostile")
    (script, image, svg, *_), everything = HOSTILE, "\n".join(HOSTILE)
    table = everything.replace("\n", " ").replace("`", "``").replace("\u0000", " ")
    spec = JobSpec(
        f"CREATE TABLE `{table}` (a STRING) WITH ('connector' = 'datagen');\n"
        f"CREATE TABLE t (a STRING, n BIGINT) WITH ('connector' = 'blackhole');\n"
        f"INSERT INTO t SELECT a, COUNT(*) FROM `{table}` GROUP BY a -- {script}\n;",
        engine="flink", source=image, settings={script: everything},
    )  # fmt: skip
    later = replace(spec, script=spec.script.replace("COUNT(*)", f"COUNT(a) -- {everything}\n"))
    origin = Origin(script, f"{image} <{svg}>", team=image, owned_by=everything)
    start = JobStart("stateless", request_id="f" * 32, job_id=JobRef(script))
    common: dict[str, Any] = {"origin": origin, "review": Review("partial", None, everything, everything)}
    at.put("first", DeployedEntry(job=spec, start=start, evidence=HOSTILE, message=everything, **common))
    at.put("backfill", BackfilledEntry(version=JobVersion.of(spec), sinks={script: image}, counts={svg: 3}))
    at.put("restart", FailedEntry(job=later, start=start, message=everything, **common))
    review = replace(at.check(spec, later, "approve"), approved_by=everything, reason=everything)
    at.put("approve", RejectedEntry(version=JobVersion.of(later), review=review, message=everything))
    at.run = 2
    review = at.check(spec, later, everything)
    at.put("approve", ApprovedEntry(version=JobVersion.of(later), review=replace(review, approved_by=everything)))
    at.run = 3
    review = at.check(spec, later, "approve")
    at.put(
        "shadow", *(shadowed(JobVersion.of(later), review, shadow_report(text, text)) for text in (script, everything))
    )
    return at.ledger


def fill_fleet(root: Path, count: int = FLEET) -> None:
    """Deployments of many teams, with an index; some ask, some failed."""
    domains = ("search", "sensors", "shops", "stock", "taxis", "tolls", "traffic", "trips", "users", "weather")
    for number in range(count):
        name = f"{domains[number % len(domains)]}-{number // len(domains):03d}"
        entries = history(name)[: None if number % 7 == 0 else -1]
        team = Origin("c0ffee" * 6 + "c0ff", "Ann Example <ann@example.org>", domains[number % len(domains)], "ann")
        (root / name).mkdir(parents=True)
        for place, entry in enumerate(entries, 1):
            entry = replace(entry, origin=team) if isinstance(entry, CheckedEntry) else entry
            stored = replace(entry, number=place, at=ago(hours=number % 400 + (len(entries) - place) / 60))
            (root / name / f"{place:06d}.json").write_bytes(_encoded(stored))
    rebuild_index(str(root))
    fill_interrupted(root, None, "sensors-eu")
    at, start = Writing(root, "trips-eu", None), JobStart("stateless", job_id=JobRef("b" * 32))
    at.put("first", DeployedEntry(job=job(1), start=start))
    at.put("resume", FailedEntry(job=job(2), start=start, message="the job did not reach RUNNING within 60 s"))
