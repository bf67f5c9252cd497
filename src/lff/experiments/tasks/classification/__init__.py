"""Image classification with ViT (Section 4.3)."""
