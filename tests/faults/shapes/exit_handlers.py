"""atexit handlers, threads that outlive main, __del__ at shutdown, finally after sys.exit."""
import atexit
import sys
import threading

import torch

atexit.register(lambda: print("atexit", (torch.ones(2) * 2).sum().item()))
threading.Thread(target=lambda: (threading.main_thread().join(), print("late thread", torch.ones(3).sum().item()))).start()
model = torch.nn.Linear(2, 2)
try:
    print(model(torch.ones(1, 2)).shape)
    sys.exit(0)
finally:
    print("finally")
