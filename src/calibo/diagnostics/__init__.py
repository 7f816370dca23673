"""Diagnostics of a study: forecast audits, learned warps and task correlations, stopping rules."""
