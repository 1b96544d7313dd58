"""Statistics that attempts and inference share: intervals of Student's t, and tests of several hypotheses."""
