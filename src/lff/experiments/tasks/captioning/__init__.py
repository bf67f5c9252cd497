"""Widget captioning: a sentence for every icon and picture of a screen (Section 4.4)."""
