"""Audit of many jobs: pairs of scripts are judged, and counted by outcome and reason."""
