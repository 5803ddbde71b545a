"""``python -m airflow_flinkcompat.local_flink``: the arguments are a contract that scripts depend on."""

from airflow_flinkcompat.local_flink.cluster import main

raise SystemExit(main())
