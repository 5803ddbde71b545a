"""An upgrade of Flink under a job: what of it a new line has to read, and how that ended where it was run.

``traits`` says in words what a job is made of, as far as a restore on another line depends on it; ``verdict`` holds
these words against those of the restores that were run between two lines. What was not run is named, never assumed.
"""
