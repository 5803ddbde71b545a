"""A report and the catalogue of rules, rendered for people."""
