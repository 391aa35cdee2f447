"""The server's tables, in one place.

Owns names, keys and the schema's version. Promises portable column types and
statements (SQLite here; another database can stand behind the same tables), and
that what must be unique is unique in the database, not only in the code.

Three numbers are given under the writer's lock, so that commit order is their
order: `agents.last_sequence` (one mailbox), `conversations.last_sequence` (one
conversation) and `agents.last_receipt` (receipts told to one sender).
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

VERSION = 1
APPLICATION_ID = 0x41575331  # "AWS1"

metadata = MetaData()

accounts = Table(
    "accounts",
    metadata,
    Column("id", String, primary_key=True),
    Column("disabled_at", Float),
)

# A connection is also the family of its refresh tokens. `parent_id` and
# `agent_id` are set for a child only. `number`, here and below, is the order in
# which rows were made, whatever the clock said.
connections = Table(
    "connections",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("account_id", String, ForeignKey("accounts.id"), nullable=False),
    Column("parent_id", String, ForeignKey("connections.id")),
    Column("agent_id", String, ForeignKey("agents.id")),
    Column("client_name", String, nullable=False, default=""),
    Column("scopes", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("revoked_at", Float),
    Column("revoked_reason", String, nullable=False, default=""),
    Index("connections_children", "parent_id", "agent_id"),
)

access_tokens = Table(
    "access_tokens",
    metadata,
    Column("hash", String, primary_key=True),
    Column("connection_id", String, ForeignKey("connections.id"), nullable=False),
    Column("expires_at", Float),
    Index("access_tokens_connection", "connection_id"),
)

refresh_tokens = Table(
    "refresh_tokens",
    metadata,
    Column("hash", String, primary_key=True),
    Column("connection_id", String, ForeignKey("connections.id"), nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("used_at", Float),
    Index("refresh_tokens_connection", "connection_id"),
)

# `attachment_id` is the current lease, if any. `seen_at` is when the name became
# connected or was last connected; `stream_open` says which of the two.
agents = Table(
    "agents",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", String, ForeignKey("accounts.id"), nullable=False),
    Column("name", String, nullable=False),
    Column("folded", String, nullable=False),
    Column("provider", String, nullable=False, default=""),
    Column("purpose", String, nullable=False, default=""),
    Column("purpose_at", Float),
    Column("policy", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("unregistered_at", Float),
    Column("attachment_id", String),
    Column("seen_at", Float),
    Column("stream_open", Boolean, nullable=False, default=False),
    Column("last_sequence", Integer, nullable=False),
    Column("last_receipt", Integer, nullable=False, default=0),
    Column("last_retraction", Integer, nullable=False, default=0),
    Column("offered_through", Integer, nullable=False, default=0),
    Index(
        "agents_live_name",
        "account_id",
        "folded",
        unique=True,
        sqlite_where=text("unregistered_at IS NULL"),
        postgresql_where=text("unregistered_at IS NULL"),
    ),
)

# Which connections may use a name.
permissions = Table(
    "permissions",
    metadata,
    Column("agent_id", String, ForeignKey("agents.id"), primary_key=True),
    Column("connection_id", String, ForeignKey("connections.id"), primary_key=True),
)

attachments = Table(
    "attachments",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("account_id", String, ForeignKey("accounts.id"), nullable=False),
    Column("agent_id", String, ForeignKey("agents.id"), nullable=False),
    Column("child_id", String, ForeignKey("connections.id")),
    Column("provider", String, nullable=False),
    Column("session_id", String, nullable=False),
    Column("host_id", String, nullable=False),
    Column("state", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Index("attachments_session", "account_id", "provider", "session_id"),
    Index("attachments_agent", "agent_id"),
)

# Exactly two sides. A side is an agent id or `account:<id>`. `pair` is set when
# both are agents: two names share one conversation.
conversations = Table(
    "conversations",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", String, ForeignKey("accounts.id"), nullable=False),
    Column("opener", String, nullable=False),
    Column("other", String, nullable=False),
    Column("pair", String, unique=True),
    Column("created_at", Float, nullable=False),
    Column("last_sequence", Integer, nullable=False, default=0),
)

# `mailbox_sequence` is empty for what goes to an account side: it has no mailbox.
# `delivery` only rises; `observed` (offered, unsure) is kept apart from it.
messages = Table(
    "messages",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", String, ForeignKey("accounts.id"), nullable=False),
    Column("conversation_id", String, ForeignKey("conversations.id"), nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("sender_id", String, ForeignKey("agents.id")),
    Column("sender", String, nullable=False),
    Column("sender_provider", String, nullable=False, default=""),
    Column("connection_id", String, ForeignKey("connections.id"), nullable=False),
    Column("recipient_id", String, ForeignKey("agents.id")),
    Column("mailbox_sequence", Integer),
    Column("body", Text, nullable=False),
    Column("sent_at", Float, nullable=False),
    Column("delivery", String, nullable=False, default="stored"),
    Column("delivery_at", Float),
    Column("evidence", String, nullable=False, default=""),
    Column("observed", String, nullable=False, default=""),
    Column("retracted", String, nullable=False, default=""),
    Column("retraction", Integer),
    UniqueConstraint("conversation_id", "sequence"),
    UniqueConstraint("recipient_id", "mailbox_sequence"),
    Index("messages_sent_at", "conversation_id", "sent_at"),
    Index("messages_connection", "connection_id"),
    Index("messages_sender", "sender_id"),
    Index("messages_retraction", "recipient_id", "retraction"),
)

# What a submission id was answered; it outlives the message.
submissions = Table(
    "submissions",
    metadata,
    Column("sender_side", String, primary_key=True),
    Column("submission_id", String, primary_key=True),
    Column("address", String, nullable=False),
    Column("body_hash", String, nullable=False),
    Column("message_id", String, nullable=False),
    Column("conversation_id", String, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("recipient_side", String, nullable=False),
    Column("sent_at", Float, nullable=False),
    Index("submissions_message", "message_id"),
    Index("submissions_sent_at", "sent_at"),
)

# What a sender is told of its messages, numbered per sending agent.
receipts = Table(
    "receipts",
    metadata,
    Column("agent_id", String, ForeignKey("agents.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("message_id", String, nullable=False),
    Column("delivery", String, nullable=False),
    Column("at", Float, nullable=False),
    Index("receipts_at", "at"),
)
