"""The bench of calibo: problems, peers, runs, statistics and the papers' tables, so that every claim can be checked."""
