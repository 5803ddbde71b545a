"""What a job keeps: its operators with the ids by which Flink finds their state again, and what each of them stores."""
