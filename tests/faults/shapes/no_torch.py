"""Never imports torch."""
import sys

print(sum(range(10)), "torch" in sys.modules)
