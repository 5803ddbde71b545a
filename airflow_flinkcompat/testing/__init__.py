"""What is shipped for tests: a target in memory, and the contract that every target keeps."""
