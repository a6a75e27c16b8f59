"""Pictures made from reports and analyses."""
