"""An upgrade of Flink under a job: what the job stores, and how a new line reads it.

``stored`` names it by exec node, accumulator, serializer and connector. ``verdict`` holds the names against restores
between two lines and, where both lines were asked, against their planners. What was not run is named, never assumed.
"""
