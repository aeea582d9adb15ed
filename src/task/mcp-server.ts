// MCP servers that a task offers its agent. Task files are stored and passed around, so a header may name the variable
// that holds a credential but never the credential itself.
import { z } from "zod";
import { stripSpace } from "./strip-space.ts";

const TRANSPORTS = ["stdio", "sse", "streamable-http"] as const;

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;
const SENSITIVE_NAME = /KEY|SECRET|TOKEN(?!S)|PASSWORD|CREDENTIAL|AUTH/i;
const COOKIE_HEADERS = ["cookie", "set-cookie"];

/** References without defaults, after an optional scheme ("Bearer"), joined by separators only. */
const REFERENCED_CREDENTIAL =
  /^\s*(?:[A-Za-z]+\s+)?\$\{[A-Za-z_][A-Za-z0-9_]*(?::-)?\}(?:[\s:-]*\$\{[A-Za-z_][A-Za-z0-9_]*(?::-)?\})*\s*$/;

const Headers = z.record(z.string(), z.string()).superRefine((headers, context) => {
  for (const [name, value] of Object.entries(headers)) {
    const message = headerFault(name, value);
    if (message !== undefined) context.addIssue({ code: "custom", message, path: [name] });
  }
});

export const McpServer = z
  .strictObject({
    name: z.string(),
    transport: z
      .preprocess(value => (value === "http" ? "streamable-http" : value), z.enum(TRANSPORTS))
      .default("sse"),
    url: z.string().optional(),
    command: z.string().optional(),
    args: z.array(z.string()).default([]),
    headers: Headers.default({}),
  })
  .superRefine(({ transport, url, command, headers }, context) => {
    const issue = (key: string, message: string) =>
      context.addIssue({ code: "custom", message, path: [key] });
    if (transport !== "stdio" && !url) issue("url", `an address, which transport ${transport} needs`);
    if (transport === "stdio" && !command) issue("command", "a command, which transport stdio needs");
    if (transport === "stdio" && Object.keys(headers).length > 0) {
      issue("headers", "no headers, which transport stdio does not send");
    }
  });
export type McpServer = Readonly<z.output<typeof McpServer>>;

/** @returns what was expected instead, undefined for a good header */
function headerFault(name: string, value: string): string | undefined {
  if (!HEADER_NAME.test(name)) return "an HTTP header name";
  if (/[\r\n]/.test(value)) return "a header value on one line";
  const references = [...value.matchAll(REFERENCE)].map(([, variable = "", fallback]) => ({
    variable,
    fallback,
  }));
  const isMalformed = value.replace(REFERENCE, " ").includes("${");
  if (isMalformed || references.some(({ fallback }) => fallback?.includes("${"))) {
    return `references of the form \${NAME} or \${NAME:-default}`;
  }
  const isSensitive = SENSITIVE_NAME.test(name) || COOKIE_HEADERS.includes(name.toLowerCase());
  const holdsDefault = references.some(
    ({ variable, fallback }) => fallback && (isSensitive || SENSITIVE_NAME.test(variable)),
  );
  const holdsLiteral = isSensitive && stripSpace(value) !== "" && !REFERENCED_CREDENTIAL.test(value);
  return holdsDefault || holdsLiteral
    ? `the credential as \${NAME} without a default, such as "Bearer \${TOKEN}"`
    : undefined;
}
