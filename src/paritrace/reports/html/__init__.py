"""Pages of a comparison, a check and a run: records of what they say, the rules that make them, their templates."""
