"""The Airflow provider: operators, sensors, triggers, hooks, links and the pages of deployments."""
