"""HTTP for this machine alone: the rule of the token, the socket on 127.0.0.1, the server's thread (SU-11, SE-17)."""
