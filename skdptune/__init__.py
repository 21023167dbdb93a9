"""Differentially private hyperparameter tuning in the manner of scikit-learn."""

__version__ = "0.1.0.dev0"
