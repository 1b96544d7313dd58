"""What starts ranks and carries bytes to and from them: one seam, one conformance suite (SE-16)."""
