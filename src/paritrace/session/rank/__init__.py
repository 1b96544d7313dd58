"""What runs in a rank: the work thread with its gate between steps, and the control thread beside it (SE-2, SE-6)."""
