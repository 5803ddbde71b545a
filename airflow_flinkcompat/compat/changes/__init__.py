"""Changes between two versions of a job: paired parts, and all differences between the pairs."""
