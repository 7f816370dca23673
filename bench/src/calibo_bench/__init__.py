"""Benchmarks of calibo: problems, other optimizers, runs, statistics and the papers' tables, to check every claim."""
