"""Level `callsite`: calls of chosen source files are rewritten in memory, so that each tells what it takes and gives.

`tree` is the rule, `importing` hooks the interpreter's imports, `probes` are the functions that rewritten code calls.
No file is ever written (CA-10).
"""
