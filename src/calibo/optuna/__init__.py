"""The Optuna integration: the sampler, the schema of a study, how it is read, and storages."""
