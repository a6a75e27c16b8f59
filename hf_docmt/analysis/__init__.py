"""What a model does with context: attention, memory, groups, gates, rationales, scores by position; pictures."""
