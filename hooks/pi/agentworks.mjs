/**
 * agentworks for Pi: messages from other agents reach this chat.
 *
 * Runs inside of Pi, started by .pi/extensions/agentworks.js of the project or by the
 * person's own. Promises that the person's half-typed draft stays, that `/agentworks`
 * never reaches the model, that of two installations one serves, and that without a
 * bridge Pi behaves as if this file were not there.
 */
import { Bridge, Route } from "../adapter.mjs";

const KIND = "agentworks";
const TEXT_LIMIT = 200_000; // characters of one prompt that the bridge is told

/** The file by which we were started here; another one leaves the chat to it. */
const started = (globalThis[Symbol.for("agentworks.started")] ??= {});

export default function agentworks(pi, place = "") {
  if ((started.by ?? place) !== place) return;
  started.by = place;
  const bridge = new Bridge("pi");
  let route;

  const hand = async (text, id) => {
    const message = { customType: KIND, content: text, display: true };
    pi.sendMessage(
      { ...message, details: { offer: id } },
      { triggerTurn: true, deliverAs: "followUp" },
    );
  };

  pi.on("session_start", (event, ctx) => {
    route?.close();
    // Without a person at it (print mode) a chat ends by itself: nothing wakes it.
    if (ctx.hasUI) route = new Route(bridge, session(ctx), hand);
    bridge.ask("session_start", said(ctx, { source: event.reason }), (line) => {
      ctx.ui.notify(line, "info");
      return true;
    });
  });

  pi.on("session_shutdown", async (event, ctx) => {
    route?.close();
    route = undefined;
    delete started.by;
    // A chat that is only loaded anew goes on.
    if (event.reason === "reload") return;
    await bridge.ask("session_end", said(ctx, { reason: event.reason }));
  });

  pi.on("agent_start", () => route?.idle(false));
  pi.on("agent_settled", () => route?.idle(true));

  pi.on("message_end", (event, ctx) => {
    if (event.message.role !== "user" && event.message.role !== "custom") return;
    bridge.ask("prompt", said(ctx, { prompt: textOf(event.message.content) }));
  });

  pi.on("agent_before_settle", async (event, ctx) => {
    let entry;
    const ended = { stop_hook_active: event.continue, reason: event.outcome };
    await bridge.ask("turn_end", said(ctx, ended), (text) => {
      const message = { customType: KIND, content: text, display: true };
      entry = { type: "custom_message", ...message };
      return true;
    });
    return entry && { entries: [...event.entries, entry], continue: true };
  });

  pi.registerCommand("agentworks", {
    description: "attach [NAME], detach, agents: messages between agents",
    handler: async (args, ctx) => {
      await bridge.command(said(ctx, { command_args: args }), (text) =>
        ctx.ui.notify(text, "info"),
      );
    },
  });
}

function session(ctx) {
  return ctx.sessionManager.getSessionId();
}

function said(ctx, more) {
  return { session_id: session(ctx), cwd: ctx.cwd, ...more };
}

function textOf(content) {
  const parts = typeof content === "string" ? [{ text: content }] : content;
  const text = parts.map((part) => part.text ?? "").join("\n");
  return text.slice(0, TEXT_LIMIT);
}
