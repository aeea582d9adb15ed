// Keeps why tasks and jobs stopped: ECS forgets it after about an hour.
import { z } from "zod";
import { classifyStop } from "../../src/sandbox/fargate/classify-stop.ts";
import { stopKey } from "../../src/sandbox/fargate/stop-records.ts";
import { encodeJson } from "../../src/store/json.ts";
import { emitMetrics } from "../metrics.ts";
import { stageHandler } from "../stage-handler.ts";

/** Events of ECS and Batch, as EventBridge delivers them; they are AWS's, so what else is in them is kept as it is. */
const StopEvent = z.looseObject({
  id: z.string(),
  time: z.iso.datetime(),
  "detail-type": z.enum(["ECS Task State Change", "Batch Job State Change"]),
  detail: z.looseObject({
    taskArn: z.string().optional(),
    jobId: z.string().optional(),
    stopCode: z.string().optional(),
    stoppedReason: z.string().optional(),
    startedAt: z.string().optional(),
    containers: z
      .array(z.looseObject({ exitCode: z.int().optional(), reason: z.string().optional() }))
      .optional(),
  }),
});

export const handler = stageHandler(StopEvent, async (event, { store }) => {
  const { detail, time, id } = event;
  const what = detail.taskArn?.split("/").at(-1) ?? detail.jobId ?? id;
  const stopClass = detail.taskArn === undefined ? "failed" : classifyStop(detail);
  const key = stopKey(new Date(time), what);
  // Events may come twice, and the first says as much as the second.
  await store.put(key, encodeJson({ class: stopClass, time, detail }), { ifNoneMatch: "*" });
  if (stopClass === "never-started") emitMetrics({ TasksNotStarted: { value: 1, unit: "Count" } });
  return { key, class: stopClass };
});
