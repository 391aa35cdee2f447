"""Runs the core: one queue per attachment, effects in order, saves before all else.

queue      one attachment: its events in order, each commit before it shows
deliveries the rows of one attachment, found by id and by state
ending     what the end of a lease does to the rows of its attachment
heirs      what an ended lease leaves to the agent's next one
offering   one offer: chosen, saved, handed to a route, its outcome saved
streaming  what the server's stream says, until it ends and is opened again
outgoing   submissions, receipts and progress on their way to the server
roster     every attachment of this bridge, restored and found again
attaching  the person's attach and detach, and the end of a session
hooks      one hook: who says it, what it means, what is printed
verbs      what an agent may do in its own session
calls      one local call: who asks, whether they may, what is answered
children   one MCP child: its tools are the verbs
bridge     the parts that all of these share
"""
