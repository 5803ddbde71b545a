"""Values that Spark itself redacts."""

from airflow_flinkcompat.secrets.spellings import java_pattern

# Names and values that Spark leaves out of plans, event logs and pages. Whatever a script says of an Iceberg catalog is
# left out, because what is secret of it is up to the catalog; then what Spark hides by itself, keys of storages, and
# addresses with a password in them.
_SECRETS = f"{java_pattern()}|sasl|ssl[.]key|header[.]|sql[.]catalog[.]flinkcompat_|://[^/@ ]+@"
REDACTION = (
    ("spark.redaction.regex", _SECRETS),
    ("spark.sql.redaction.options.regex", f"{_SECRETS}|url"),
)
