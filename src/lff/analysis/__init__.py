"""Numbers about encodings: what they make of positions, before and after training."""
