// RUN as a command of a shell, and what is said of one that failed.
import { capturedText } from "../sandbox/captured-text.ts";
import type { ExecResult } from "../sandbox/sandbox.ts";
import { type Instruction, jsonWords } from "./dockerfile.ts";
import { type ImageConfig, isPlainShell, quoteWord } from "./image-config.ts";

/** An error shows this many last bytes of a failed command's output. */
export const LAST_OUTPUT_BYTES = 4000;

/** The script that /bin/sh gets. */
export function commandOf({ text, heredocs }: Instruction, { shell }: ImageConfig): string {
  const [script] = heredocs;
  const listed = jsonWords(text);
  if (listed !== undefined) return `exec ${listed.map(quoteWord).join(" ")}`;
  // A here-document alone is the script itself; one with a program's name in its first line is for that program.
  const isScript = script !== undefined && heredocs.length === 1 && text === script.word;
  const whole = isScript
    ? script.content
    : [text, ...heredocs.map(({ content, name }) => `${content}${name}`)].join("\n");
  const [, program] = (isScript && /^#!\s*(.*?)\s*\n/.exec(whole)) || [];
  if (program !== undefined)
    return `cat > ${SCRIPT} <<'T1-SCRIPT'\n${whole}T1-SCRIPT\nchmod +x ${SCRIPT} && ${SCRIPT}; code=$?; rm -f ${SCRIPT}; exit $code`;
  if (isPlainShell(shell)) return whole;
  return `exec ${[...shell, whole].map(quoteWord).join(" ")}`;
}

const SCRIPT = "/.t1-script";

export function endText({ end }: ExecResult, limitMs: number): string {
  if (end.kind === "exited") return `ended with exit code ${end.exitCode}`;
  if (end.kind === "signalled") return `was ended by ${end.signal}`;
  return `was not done within the ${limitMs / 1000} s of the build`;
}

export function lastOutput({ stdout, stderr }: ExecResult): string {
  const text = [stdout, stderr].map(output => capturedText(output).trim()).filter(output => output !== "");
  return text.map(output => output.slice(-LAST_OUTPUT_BYTES / 2)).join("\n");
}
