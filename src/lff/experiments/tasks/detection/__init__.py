"""Object detection with DETR (Section 4.2 and the appendix)."""
