"""Redeploying a job as a sequence that can be taken up anywhere: stop, start, verify, roll back."""
