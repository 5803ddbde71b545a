"""The Spark packages connectors need, as Maven coordinates, in versions that were run together on Spark 4.1."""

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3"
DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
POSTGRESQL = "org.postgresql:postgresql:42.7.11"

# Options that Spark leaves out of plans, logs and pages, beside those it hides by itself (passwords, tokens, secrets).
REDACTION = ("spark.sql.redaction.options.regex", "(?i)url|credential|jaas|sasl|ssl[.]key")
