"""An upgrade of Flink under a job: the job's state, and its reading by the new line.

``stored`` names it by exec node, accumulator, serializer and connector. ``verdict`` holds the names against restores
between two lines and, where both lines were asked, against their planners. What was not run is named, never assumed.
"""
