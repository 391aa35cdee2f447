/**
 * agentworks for opencode: messages from other agents reach the chats of this process.
 *
 * Runs inside of opencode, started by .opencode/plugin/agentworks.js of the project or
 * by the person's own. Promises that the person's half-typed draft stays, that
 * `/agentworks` never reaches the model, that subtasks of an agent are left alone, that
 * of two installations one serves, and that without a bridge opencode behaves as if
 * this file were not there.
 */
import { Bridge, Route } from "../adapter.mjs";

const SESSION = "AGENTWORKS_SESSION_ID";
const TOAST_MS = 20_000;
const TEXT_LIMIT = 200_000; // characters of one prompt that the bridge is told

/** The chats of each folder that were met in this process, kept over a reload. */
const met = (globalThis[Symbol.for("agentworks.chats")] ??= new Map());

/** By folder the file by which we were started; another one leaves it to that. */
const started = (globalThis[Symbol.for("agentworks.started")] ??= new Map());

export default async function agentworks({ client, directory }, place = "") {
  if ((started.get(directory) ?? place) !== place) return {};
  started.set(directory, place);
  const bridge = new Bridge("opencode");
  const chats = new Map(); // session id -> Chat, or null for a subtask

  if (!met.has(directory)) met.set(directory, new Set());
  for (const id of met.get(directory)) open(id);

  function open(id) {
    met.get(directory).add(id);
    const chat = { id, choices: {}, reason: "completed" };
    chat.hand = (text) => prompt(client, chat, text);
    chat.route = new Route(bridge, id, chat.hand);
    chats.set(id, chat);
    return chat;
  }

  /** The chat of this id, or null where that is a subtask or nothing at all. */
  async function meet(id) {
    if (!id) return null;
    if (chats.has(id)) return chats.get(id);
    const { data } = await client.session.get({ path: { id } });
    if (chats.has(id)) return chats.get(id);
    if (!data) return null;
    return begin(data);
  }

  function begin(info) {
    if (chats.has(info.id)) return chats.get(info.id);
    if (info.parentID) {
      chats.set(info.id, null);
      return null;
    }
    const chat = open(info.id);
    bridge.ask("session_start", said(chat, { source: "startup" }), toast);
    return chat;
  }

  function forget(id) {
    const chat = chats.get(id);
    chats.delete(id);
    met.get(directory).delete(id);
    if (!chat) return;
    chat.route.close();
    bridge.ask("session_end", said(chat, { reason: "deleted" }));
  }

  const said = (chat, more) => ({ session_id: chat.id, cwd: directory, ...more });

  async function toast(message) {
    const body = { title: "AgentWorks", message, variant: "info", duration: TOAST_MS };
    await client.tui.showToast({ body });
    return true;
  }

  async function ended(chat) {
    chat.route.idle(true);
    const reason = chat.reason;
    chat.reason = "completed";
    const turn = said(chat, { stop_hook_active: false, reason });
    await bridge.ask("turn_end", turn, async (text) => !(await chat.hand(text)));
  }

  async function happened({ type, properties }) {
    switch (type) {
      case "session.created":
        begin(properties.info);
        break;
      case "session.deleted":
        forget(properties.info.id);
        break;
      case "session.status": {
        const chat = await meet(properties.sessionID);
        chat?.route.idle(properties.status.type === "idle");
        break;
      }
      case "session.error": {
        const chat = chats.get(properties.sessionID);
        if (chat) chat.reason = "failed";
        break;
      }
      case "session.idle": {
        const chat = await meet(properties.sessionID);
        if (chat) await ended(chat);
        break;
      }
    }
  }

  return {
    // What goes wrong here is nobody's business in the chat.
    event: ({ event }) => happened(event).catch(() => {}),

    "chat.message": async (input, output) => {
      const chat = await meet(input.sessionID).catch(() => null);
      if (!chat) return;
      chat.choices = choicesOf(output.message);
      const text = output.parts.map((part) => part.text ?? "").join("\n");
      bridge.ask("prompt", said(chat, { prompt: text.slice(0, TEXT_LIMIT) }));
    },

    "command.execute.before": async (input) => {
      if (input.command !== "agentworks") return;
      const chat = await meet(input.sessionID).catch(() => null);
      let answer = "Only a chat itself can be attached, not a subtask of it.";
      const keep = (text) => (answer = text);
      if (chat) await bridge.command(said(chat, { command_args: input.arguments }), keep);
      await toast(answer).catch(() => {});
      // Nothing else keeps the command's text from the model.
      throw new Error(answer);
    },

    "shell.env": async (input, output) => {
      output.env[SESSION] = input.sessionID ?? "";
    },

    dispose: async () => {
      started.delete(directory);
      for (const chat of chats.values()) chat?.route.close();
    },
  };
}

/** Hands a text to the model in the person's present mode; a reason if refused. */
async function prompt(client, chat, text) {
  const body = { ...chat.choices, parts: [{ type: "text", text }] };
  const { error, response } = await client.session.promptAsync({
    path: { id: chat.id },
    body,
  });
  if (!error) return undefined;
  if (response?.status >= 400 && response.status < 500) {
    return `opencode did not take it (${response.status})`;
  }
  throw new Error("opencode failed, so nobody knows");
}

/** The agent and model that the person uses in this chat; a wake keeps both. */
function choicesOf({ agent, model }) {
  const choices = {};
  if (agent) choices.agent = agent;
  if (model?.providerID && model?.modelID) {
    choices.model = { providerID: model.providerID, modelID: model.modelID };
  }
  return choices;
}
