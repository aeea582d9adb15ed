// Why tasks stopped, as the deployment's recorder keeps it: ECS forgets after about an hour, and may not know a task that
// it has lost.
import { z } from "zod";
import { parseJson } from "../../store/json.ts";
import type { ObjectStore } from "../../store/object-store.ts";
import type { Stopped } from "./stop-failure.ts";

/** The fields of AWS's event that we read; it has more. */
const StopRecord = z.object({
  detail: z.object({
    stopCode: z.string().optional(),
    stoppedReason: z.string().optional(),
    startedAt: z.string().optional(),
    containers: z
      .array(
        z.object({
          name: z.string().optional(),
          exitCode: z.int().optional(),
          reason: z.string().optional(),
        }),
      )
      .optional(),
  }),
});

/** @param day of the event, UTC @param id the last part of a task's ARN */
export function stopKey(day: Date, id: string): string {
  return `stops/${day.toISOString().slice(0, 10)}/${id}.json`;
}

const DAY_MS = 86_400_000;

/** @returns undefined when nothing is recorded: events come late, and not all come */
export async function readStop(
  store: ObjectStore,
  taskArn: string,
  now: Date = new Date(),
): Promise<Stopped | undefined> {
  const id = taskArn.split("/").at(-1) ?? taskArn;
  for (const day of [now, new Date(now.getTime() - DAY_MS)]) {
    const key = stopKey(day, id);
    const found = await store.get(key);
    if (found !== undefined) return parseJson(found.body, key, StopRecord).detail;
  }
  return undefined;
}
