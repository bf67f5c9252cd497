"""Image generation with Reformer (Section 4.1)."""
