"""A soak: a real bridge under load, killed and cut at random, and then its books.

    dice       what is random in a run: all of it follows from one seed
    offers     a printed hook text, taken apart again
    door       the local socket as a script sees it
    worker     one attached script: it sends, ends turns, acknowledges, takes notes
    hooks      the ways in which its turns end
    hostile    clients that mean no good
    cutting    the line between bridge and server, and how it is broken
    world      the processes: bridge, server, scripts, the person
    chaos      what is done to them, and when
    settling   until all has come to rest
    watching   memory, descriptors, zombies, tracebacks
    facts      what the books are made from
    evidence   what is read from outside once all has stopped
    ledger     whether the books balance, and what is off
    report     the table, and the whole history of an id that is off

Run it with `make soak`. What the workers and hostile clients import is the standard
library and the bridge's clock, so that fifty processes are small.
"""
