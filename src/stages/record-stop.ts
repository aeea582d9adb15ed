// Keeps why tasks and jobs stopped, because ECS forgets it after about an hour.
import { z } from "zod";
import { classifyStop } from "../sandbox/fargate/classify-stop.ts";
import { stopKey } from "../sandbox/fargate/stop-records.ts";
import { environment } from "../settings/environment.ts";
import { encodeJson } from "../store/json.ts";
import { type StageServices, stage } from "./stage.ts";

export const recordStop = stage({
  /** Events of ECS and Batch as EventBridge delivers them. They are AWS's, so their other fields are kept as they are. */
  input: z.looseObject({
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
  }),
  output: z.strictObject({ key: z.string(), class: z.string() }),
  settings: environment("the stop recorder", {}),
  run: async ({ detail, time, id }, _: unknown, { store, onMetrics }: StageServices) => {
    const what = detail.taskArn?.split("/").at(-1) ?? detail.jobId ?? id;
    const stopClass = detail.taskArn === undefined ? "failed" : classifyStop(detail);
    const key = stopKey(new Date(time), what);
    // Events may come twice; the first says as much as the second.
    await store.put(key, encodeJson({ class: stopClass, time, detail }), { ifNoneMatch: "*" });
    if (stopClass === "never-started") onMetrics({ TasksNotStarted: { value: 1, unit: "Count" } });
    return { key, class: stopClass };
  },
});
