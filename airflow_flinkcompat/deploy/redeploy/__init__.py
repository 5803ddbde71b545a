"""Redeployment of a job: stop, start, verify and roll back, resumable after each step."""
