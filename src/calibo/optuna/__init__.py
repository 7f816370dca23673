"""Everything Optuna: the sampler, what a study stores, how it is read, and where studies are kept."""
