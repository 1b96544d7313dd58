"""Records of evidence and the rules over them: no files, clocks, threads or torch."""
