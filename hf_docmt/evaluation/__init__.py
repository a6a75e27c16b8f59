"""Scores: corpus metrics, contrastive suites and the report."""
