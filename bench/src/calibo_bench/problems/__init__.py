"""What strategies are run on: functions, tables, models trained for real."""
