"""Comparison of many deployments with their deployed versions, and reports for people and CI."""
