"""Searches the design space of a model with Optuna, and reports what was found."""
