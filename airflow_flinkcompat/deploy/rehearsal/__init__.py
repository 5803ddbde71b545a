"""Rehearsal: restore of a new script from the live job's state, next to the live job."""
