"""Speed, measured side by side with transformers' MarianMTModel."""
