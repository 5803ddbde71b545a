"""Many deployments at once: what is deployed against what a change proposes, and how people and CI read of it."""
