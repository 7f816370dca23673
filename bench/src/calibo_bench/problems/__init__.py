"""Benchmark problems: functions, tables, and real model training."""
