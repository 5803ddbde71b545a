"""Starting positions of a job's sources, and the positions of a stopped job."""
