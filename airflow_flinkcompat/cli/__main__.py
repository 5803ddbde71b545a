"""``python -m airflow_flinkcompat.cli``."""

from airflow_flinkcompat.cli import main

if __name__ == "__main__":
    main()
