"""The bench: problems, peers, runs and statistics, so that every claim can be checked."""
