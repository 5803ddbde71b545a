"""An upgrade of Flink under a job: the job's state, and its reading by the new line.

``stored`` names it by exec node, accumulator, serializer and connector. ``verdict`` compares the names with restores
between two lines and, if both lines were asked, with their planners. An unmeasured part is named, never assumed.
"""
