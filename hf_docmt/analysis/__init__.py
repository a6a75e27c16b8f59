"""Looking into models and their scores: pictures made from reports."""
