"""The recording proxy of `paritrace infer proxy` (IN-15): forwards bytes as they are, keeps times, sizes, ids."""
