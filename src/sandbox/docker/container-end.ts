// Why a container ended: by itself, by what ran in it, or by somebody outside.
import { z } from "zod";
import type { Failure } from "../../failure/errors.ts";
import { broken, lost, nameOf } from "../../sandboxd/leased-sandbox.ts";
import { memoryKills } from "../memory-kills.ts";
import type { Engine } from "./engine.ts";
import type { SandboxRecord } from "./sandbox-folder.ts";

const Inspected = z.object({
  State: z.object({
    Running: z.boolean(),
    OOMKilled: z.boolean().optional(),
    ExitCode: z.number(),
    Error: z.string().optional(),
    Status: z.string().optional(),
  }),
});

export interface Life {
  /** Names the sandbox. */
  readonly what: string;
  /** memoryKills() when it was made. */
  readonly killsBefore: number;
}

/**
 * Why a container is not running, as a Failure; undefined while it runs. What the agent can cause is SandboxBroken.
 */
export async function whyEnded(
  engine: Engine,
  id: string,
  { what, killsBefore }: Life,
): Promise<Failure | undefined> {
  const answer = await engine.call("GET", `/containers/${id}/json`);
  if (answer.status === 404) return lost(what, "its container is gone");
  const inspected = Inspected.safeParse(answer.value);
  if (!inspected.success) return undefined;
  const { Running, OOMKilled, ExitCode, Error: said, Status = "" } = inspected.data.State;
  if (Running) return undefined;
  // Podman's stopping one has no exit code yet, which reads as 0.
  if (["stopping", "removing"].includes(Status)) return lost(what, "its container is ended from outside");
  const detail = `its container ended with code ${ExitCode}${said ? `: ${said}` : ""}`;
  // The engine's word is also of commands that the kernel killed earlier, and podman 4.3 does not always have it.
  const isMemory = ExitCode === 137 && (OOMKilled || (engine.isPodman && memoryKills() > killsBefore));
  if (isMemory && !(await wasKilledByEngine(engine, id))) return broken(what, `${detail}, out of memory`);
  if (ExitCode === 0) return lost(what, "its deadline passed");
  // 128 and a number: KILL and TERM reach process 1 from outside only.
  if (ExitCode === 137 || ExitCode === 143) return lost(what, `${detail}, killed from outside`);
  return broken(what, detail);
}

/** Somebody has asked the engine for it, as far back as it knows. */
async function wasKilledByEngine(engine: Engine, id: string): Promise<boolean> {
  const filters = encodeURIComponent(JSON.stringify({ container: [id], event: ["kill"] }));
  const until = Math.ceil(Date.now() / 1000);
  const { value } = await engine.call(
    "GET",
    `/events?since=1&until=${until}&stream=false&filters=${filters}`,
  );
  return value !== "" && value !== null; // nothing, or one line of JSON for each
}

export function lifeOf({ lease, killsBefore }: Pick<SandboxRecord, "lease" | "killsBefore">): Life {
  return { what: nameOf(lease), killsBefore };
}
