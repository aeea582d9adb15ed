// The protocols by the names that a run's config uses, and what each needs of the chat format.
import type { z } from "zod";
import type { ChatFormatOptions } from "../model/chat-format.ts";
import type { Agent } from "../settings/agent-config.ts";
import { bashToolProtocol } from "./bash-tool/bash-tool-protocol.ts";
import { compactProtocol } from "./compact-protocol.ts";
import type { Protocol } from "./protocol.ts";
import { jsonFormat, xmlFormat } from "./terminus/reply-format.ts";
import { terminusProtocol } from "./terminus/terminus-protocol.ts";

type AgentConfig = z.infer<typeof Agent>;
export type ProtocolName = AgentConfig["protocol"];

const PROTOCOLS: Readonly<Record<ProtocolName, Protocol>> = {
  compact: compactProtocol,
  "terminus-json": terminusProtocol(jsonFormat),
  "terminus-xml": terminusProtocol(xmlFormat),
  "bash-tool": bashToolProtocol,
};

export function findProtocol({ protocol }: Pick<AgentConfig, "protocol">): Protocol {
  return PROTOCOLS[protocol];
}

/** How a model's chat template is used under a config. */
export function chatOptions(
  agent: Pick<AgentConfig, "protocol" | "endOfTurn" | "system">,
): Omit<ChatFormatOptions, "template"> {
  const { endOfTurn, system } = agent;
  return { endOfTurn, system, tools: findProtocol(agent).tools };
}
