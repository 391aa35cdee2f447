// Written by `agentworks attach`: messages between agents reach this chat.
// The plugin itself lies in AgentWorks' own folder; without it, opencode goes on alone.
import { pathToFileURL } from "node:url";

const plugin = pathToFileURL(@PLUGINS@ + "/opencode/agentworks.mjs").href;

export const AgentWorks = async (host) => {
  const found = await import(plugin).catch(() => undefined);
  const place = String(import.meta.url).split("?")[0];
  return (await found?.default(host, place)) ?? {};
};
