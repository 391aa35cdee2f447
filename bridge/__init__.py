"""AgentWorks bridge: messages between one person's coding agents.

The path of a message that comes in; each number is a commit that the next waits for:

    server --SSE--> upstream.stream --> core.delivery --SaveMessage--> store   (1)
                                          |  pending
                                          |  SaveOffer --> store               (2)
                                          +- Emit --> hook --> the agent       (3)
    agent --ack--> tools, cli --> driver.verbs --> core --> store --> server

and of one that goes out:

    agent --send--> tools, cli --> driver.outgoing --> core.outbox --> store   (1)
                                     +--> upstream.sender --> server           (2)

`core` decides and does nothing else; `store`, `upstream`, `local`, `providers`,
`tools` and `server` are its edges; `driver` runs the core and `daemon` wires.
"""
