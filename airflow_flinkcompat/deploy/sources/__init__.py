"""Where the sources of a start begin to read, and where those of a stopped job stood."""
