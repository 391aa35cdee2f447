"""A whole bridge for tests: the daemon, its server, a person and script agents.

`Computer` is a scratch home with the daemon and its server as processes of their
own; `Puppet` is another process, apart from the tests, that asks as a person does
(nothing above it is a coding agent) or as the script that was attached; what the
journal holds is read from a copy by `Kept`. Linux only: it reads /proc.
"""
