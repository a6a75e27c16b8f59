"""Documents, readers, views, collators and batches."""
