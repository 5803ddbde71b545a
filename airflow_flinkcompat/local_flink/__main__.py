"""Entry point of ``python -m airflow_flinkcompat.local_flink``; scripts depend on its arguments."""

from airflow_flinkcompat.local_flink.cluster import main

raise SystemExit(main())
