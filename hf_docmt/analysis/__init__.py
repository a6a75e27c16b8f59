"""Analyses of a model's use of context: attention, memory, groups, gates, rationales, scores by position; pictures."""
