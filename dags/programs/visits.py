"""Visits of each page, counted every few minutes: an example of a program that the gate can read."""

import os

from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col, lit
from pyflink.table.window import Tumble

MINUTES = int(os.environ.get("WINDOW_MINUTES", "10"))


def tables(t_env):
    t_env.execute_sql("""
        CREATE TABLE visits (
            page STRING, visitor STRING, seconds BIGINT, visited TIMESTAMP(3),
            WATERMARK FOR visited AS visited - INTERVAL '5' SECOND
        ) WITH (
            'connector' = 'kafka', 'topic' = 'visits', 'properties.bootstrap.servers' = 'kafka:9092',
            'properties.group.id' = 'visits-per-page', 'scan.startup.mode' = 'group-offsets', 'format' = 'json'
        )""")
    t_env.execute_sql(f"""
        CREATE TABLE visits_per_page (
            window_start TIMESTAMP(3), window_end TIMESTAMP(3), page STRING, visits BIGINT, seconds BIGINT
        ) WITH (
            'connector' = 'jdbc', 'url' = 'jdbc:postgresql://warehouse/web', 'table-name' = 'visits_per_page',
            'username' = 'flink', 'password' = '{os.environ["WAREHOUSE_PASSWORD"]}'
        )""")


def main():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("pipeline.name", "visits per page")
    t_env.get_config().set("table.local-time-zone", "UTC")
    tables(t_env)
    visits = t_env.from_path("visits")
    # What is not needed stays out by name: another column of the table changes nothing below the window then.
    needed = visits.select(visits.page, visits.seconds, visits.visited)
    window = Tumble.over(lit(MINUTES).minutes).on(col("visited")).alias("w")
    counted = (
        needed.filter(col("seconds") > 0)
        .window(window)
        .group_by(col("w"), col("page"))
        .select(col("w").start, col("w").end, col("page"), lit(1).count, col("seconds").sum)
    )
    counted.execute_insert("visits_per_page")


if __name__ == "__main__":
    main()
