"""What is known of a study: analysis, summaries, insight, comparison."""
