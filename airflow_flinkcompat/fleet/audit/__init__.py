"""Audit of all jobs at once: many pairs of scripts, judged and counted by outcome and reason."""
