"""What the operators and the sensor share: the script of a deployment, its texts, and their arguments as types."""
