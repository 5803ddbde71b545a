"""The Spark packages connectors need, as Maven coordinates, in versions that were run together on Spark 4.1."""

from airflow_flinkcompat.secrets.keys import java_pattern

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3"
DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
POSTGRESQL = "org.postgresql:postgresql:42.7.11"

# Names and values that Spark leaves out of plans, event logs and pages. Whatever a script says of an Iceberg catalog is
# left out, because what is secret of it is up to the catalog; then what Spark hides by itself, keys of storages, and
# addresses with a password in them.
_SECRETS = f"{java_pattern()}|sasl|ssl[.]key|header[.]|sql[.]catalog[.]flinkcompat_|://[^/@ ]+@"
REDACTION = (
    ("spark.redaction.regex", _SECRETS),
    ("spark.sql.redaction.options.regex", f"{_SECRETS}|url"),
)
