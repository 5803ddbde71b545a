"""Redeploying a job as a sequence that can be resumed anywhere: stop, start, verify, roll back."""
