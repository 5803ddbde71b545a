"""Facts about each connector; every module defines ``CONNECTORS`` for one family."""
