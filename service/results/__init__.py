"""The results of studies: analysis, summaries, insight, comparison."""
