"""What a study has taught: its forecasts audited, its learned warps and tasks, and when to stop."""
