"""A whole investigation through the protocol of paritrace, resumable after a kill at any point."""
