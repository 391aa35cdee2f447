/**
 * adapter: what our extensions of Pi and opencode share, the way to the bridge.
 *
 * Installed as <state dir>/plugins/adapter.mjs; the bridge's socket is found from
 * there and from nothing else. Owns one hook dialogue (`ask`, `command`) and the
 * route of one chat (`Route`). Promises that without a bridge nothing happens and
 * nobody waits longer than 300 ms of silence, that only a socket of the same user
 * is spoken to, that after giving up nothing is used any more, and that an offer
 * is handed to the host once in one process, however often it comes.
 */
import { lstatSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HEADER_LIMIT = 256; // bytes of one header line, its newline counted
const SAID_LIMIT = 8 << 20; // bytes that one hook may say
const REPLY_LIMIT = 1 << 20; // bytes of one dialogue's frames, or of one offer
const WAIT_LIMIT_S = 600; // a longer wait is nonsense
const SILENCE_MS = 300; // of the bridge, before it asked for more
const TYPED_SILENCE_MS = 2_000; // the same, when the person waits for an answer
const GRACE_MS = 50; // for what arrived while the program itself stood still
const LINGER_MS = 2_000; // for the bridge to close after the last word
const PATH_LIMIT = 103; // bytes of an absolute path that a socket can have
const FIRST_PAUSE_MS = 100; // before connecting again, doubled up to the last
const LAST_PAUSE_MS = 5_000;
const OFFERS_KEPT = 256;

const FOLDER = dirname(fileURLToPath(import.meta.url));
const NOT_RUNNING =
  "The AgentWorks bridge is not running, so nothing was done. Start it in a" +
  " terminal: agentworks up";
const NO_ANSWER =
  "The AgentWorks bridge did not answer in time, so nobody can say here whether" +
  " this was done. Look in a terminal: agentworks agents";

/** The outcome of each offer that this process was handed, by its id. */
const offers = (globalThis[Symbol.for("agentworks.offers")] ??= new Map());

/** One provider's way to the bridge of this user. */
export class Bridge {
  constructor(provider, socketPath = join(FOLDER, "..", "run", "bridge.sock")) {
    this.provider = provider;
    this.path = socketPath;
    this.counts = new Map();
  }

  /** Why no bridge can be reached from here, as a sentence; empty if one may be. */
  obstacle() {
    if (Buffer.byteLength(this.path) > PATH_LIMIT) {
      return (
        `The bridge's socket has a path of more than ${PATH_LIMIT} bytes, which` +
        " a program like this one cannot open. Set AGENTWORKS_STATE to a folder" +
        " with a shorter path and set the project up again."
      );
    }
    try {
      const run = lstatSync(dirname(this.path));
      const isPrivate = run.isDirectory() && (run.mode & 0o077) === 0;
      const socket = lstatSync(this.path);
      if (!isPrivate || !isOurs(run) || !isOurs(socket) || !socket.isSocket()) {
        return "The bridge's socket is not private to you, so it was not used.";
      }
    } catch {
      return NOT_RUNNING;
    }
    return "";
  }

  /**
   * One hook: says it, and has a text that comes back used. `use(text)` answers
   * whether the host has it now. Resolves to null when an answer came, else to
   * what the person may be told instead.
   */
  async ask(event, said, use = () => false, silenceMs = SILENCE_MS) {
    const obstacle = this.obstacle();
    if (obstacle) return obstacle;
    const dialogue = new Dialogue(this.path, this.frame(event, said), silenceMs);
    const text = await dialogue.answer;
    if (text === null) {
      dialogue.end("unprinted");
      return dialogue.fallback || (dialogue.isAsked ? NO_ANSWER : NOT_RUNNING);
    }
    try {
      if (text) dialogue.end((await use(text)) ? "printed" : "unprinted");
      else dialogue.close();
    } catch {
      dialogue.close(); // The host may or may not have it: no word is the answer.
    }
    return null;
  }

  /** A command that the person typed; `show(text)` gets its answer. */
  async command(said, show) {
    const shown = (text) => {
      show(text);
      return true;
    };
    const left = await this.ask("command", said, shown, TYPED_SILENCE_MS);
    if (left !== null) show(left);
  }

  frame(event, said) {
    // A second installation says the same of the same event, and nothing else does.
    const count = (this.counts.get(event) ?? 0) + 1;
    this.counts.set(event, count);
    const whole = { ...said, hook_event_name: event, turn_id: `${count}` };
    const body = Buffer.from(JSON.stringify(whole));
    const head = `AW1 hook ${this.provider} ${event} ${body.length}\n`;
    return Buffer.concat([Buffer.from(head), body]);
  }
}

function isOurs(facts) {
  return facts.uid === process.getuid();
}

/** One request and what came back; `answer` is a text, or null for giving up. */
class Dialogue {
  constructor(path, request, silenceMs) {
    this.fallback = "";
    this.received = Buffer.alloc(0);
    this.isAsked = false;
    this.answer = new Promise((resolve) => (this.resolve = resolve));
    this.wait(silenceMs);
    if (request.length > SAID_LIMIT) return this.settle(null);
    this.socket = connect(path);
    this.socket.on("data", (chunk) => this.take(chunk));
    this.socket.on("error", () => this.settle(null));
    this.socket.on("close", () => this.settle(null));
    this.socket.write(request, (error) => (this.isAsked = !error));
  }

  wait(forMs) {
    clearTimeout(this.timer);
    // Race: after a program stood still its clocks come first; what the bridge said
    // meanwhile is read before it counts as silent.
    this.timer = setTimeout(() => {
      this.timer = setTimeout(() => this.settle(null), GRACE_MS);
    }, forMs);
  }

  settle(text) {
    clearTimeout(this.timer);
    // Whatever comes later is for nobody, and is not kept either.
    this.socket?.removeAllListeners("data").resume();
    this.received = Buffer.alloc(0);
    this.resolve(text);
    this.resolve = () => {};
  }

  take(chunk) {
    this.received = Buffer.concat([this.received, chunk]);
    try {
      for (let frame; (frame = this.next()); ) {
        if (frame.waitS === undefined) return this.settle(frame.text);
        this.fallback = frame.text;
        this.wait(frame.waitS * 1000);
      }
    } catch {
      this.settle(null);
    }
  }

  /** The next whole frame, undefined while it is incomplete; throws for garbage. */
  next() {
    const end = this.received.indexOf("\n");
    if (end < 0 || end >= HEADER_LIMIT) {
      if (this.received.length >= HEADER_LIMIT) throw new Error("no header");
      return undefined;
    }
    const frame = parseHeader(this.received.toString("latin1", 0, end));
    const size = end + 1 + frame.length;
    if (this.received.length < size) return undefined;
    frame.text = this.received.toString("utf8", end + 1, size);
    this.received = this.received.subarray(size);
    return frame;
  }

  /** The last word, if the request left whole: else it would be taken for its end. */
  end(word) {
    if (!this.socket || !this.isAsked) return this.close();
    this.socket.end(`AW1 ${word} 0\n`);
    // A bridge that stands still keeps neither the connection nor the program.
    this.socket.unref();
    setTimeout(() => this.close(), LINGER_MS).unref();
  }

  close() {
    this.socket?.destroy();
  }
}

const HEADER =
  /^AW1 (?:wait ([0-9]{1,3})|print) [0-9]{1,3} (?:stdout|stderr) ([0-9]{1,7})(?: |$)/;

function parseHeader(line) {
  const found = HEADER.exec(line);
  if (!found) throw new Error("no frame of ours");
  const waitS = found[1] === undefined ? undefined : Number(found[1]);
  const length = Number(found[2]);
  if (waitS > WAIT_LIMIT_S || length > REPLY_LIMIT) throw new Error("too much");
  return { waitS, length };
}

/**
 * The way from the bridge into one chat, kept open until `close`.
 *
 * `hand(text, id)` gives an offer to the host in one attempt; it resolves to a
 * reason (not one byte reached the host) or to nothing (the host has it). What it
 * throws leaves the outcome open.
 */
export class Route {
  constructor(bridge, sessionId, hand) {
    this.bridge = bridge;
    this.sessionId = sessionId;
    this.hand = hand;
    this.pauseMs = FIRST_PAUSE_MS;
    this.isIdle = true;
    this.open();
  }

  /** Tells the bridge whether the chat waits for its person now. */
  idle(isIdle) {
    if (this.isIdle === isIdle) return;
    this.isIdle = isIdle;
    this.send({ idle: isIdle });
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.socket?.destroy();
  }

  open() {
    if (this.isClosed) return;
    if (this.bridge.obstacle()) return this.openLater();
    let rest = "";
    const socket = (this.socket = connect(this.bridge.path));
    socket.unref();
    socket.setEncoding("utf8");
    socket.on("connect", () => {
      socket.write(`AW1 route ${this.bridge.provider} ${this.sessionId} 0\n`);
      this.isReady = true;
      this.send({ idle: this.isIdle });
    });
    socket.on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop();
      if (rest.length > REPLY_LIMIT) return socket.destroy();
      this.pauseMs = FIRST_PAUSE_MS;
      for (const line of lines) this.take(line);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      if (this.socket === socket) this.openLater();
    });
  }

  openLater() {
    if (this.isClosed) return;
    this.socket = undefined;
    this.isReady = false;
    this.timer = setTimeout(() => this.open(), this.pauseMs * (0.5 + Math.random() / 2));
    this.timer.unref();
    this.pauseMs = Math.min(this.pauseMs * 2, LAST_PAUSE_MS);
  }

  send(line) {
    // Race: a line that is written while it connects would leave before the header.
    if (this.isReady) this.socket.write(`${JSON.stringify(line)}\n`);
  }

  async take(line) {
    try {
      const { offer, text } = JSON.parse(line);
      if (typeof offer !== "string" || typeof text !== "string") return;
      // The same offer again is answered as before, and handed over no more.
      if (!offers.has(offer)) offers.set(offer, this.hand(text, offer));
      if (offers.size > OFFERS_KEPT) offers.delete(offers.keys().next().value);
      const reason = await offers.get(offer);
      this.send(reason ? { not_emitted: offer, reason } : { emitted: offer });
    } catch {
      // Garbage, or a host that failed on the way: nothing certain can be said.
    }
  }
}
