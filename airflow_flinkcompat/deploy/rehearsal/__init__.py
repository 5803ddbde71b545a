"""Rehearsal of a restore next to the live job: the state that the new script would take over."""
