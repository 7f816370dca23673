"""The numerical engine: Gaussian processes with analytic gradients. Knows nothing of optimization."""
