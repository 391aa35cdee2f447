"""The rig of the two whole-system machines: a daemon's inside, a server, a host."""
