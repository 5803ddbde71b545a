"""Many deployments at once: deployed versions compared with a change, and reports for people and CI."""
