// Written by `agentworks attach`: messages between agents reach this chat.
// The extension itself lies in AgentWorks' own folder; without it, Pi goes on alone.
import { pathToFileURL } from "node:url";

const extension = pathToFileURL(@PLUGINS@ + "/pi/agentworks.mjs").href;

export default async (pi) => {
  const found = await import(extension).catch(() => undefined);
  found?.default(pi, String(import.meta.url).split("?")[0]);
};
