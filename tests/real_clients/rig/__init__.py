"""The rig that drives real client programs offline, for tests to stand on.

`Computer` is a scratch home with terminals; `ClaudeRig` and `CodexRig` put a
vendor's program and its fake model on it; `Probe` is a hook that notes what a
host told it; `wait_until` is the only way to wait. Linux only: it reads /proc.
"""
