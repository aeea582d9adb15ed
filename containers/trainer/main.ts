// The trainer trains on one closed iteration and ends. It writes when it is done, so a trainer that was ended at any point
// can run again.

import { FAILED_OR_STOPPED } from "../../src/failure/exit-code.ts";
import { reportError } from "../../src/failure/report-error.ts";
import { train } from "../../src/learning/train.ts";
import { readRun } from "../../src/run/run-record.ts";
import { TRAINER_JOB, TRAINER_SETTINGS } from "../../src/stages/jobs.ts";
import { openStore } from "../../src/store/open-store.ts";
import { openEngine } from "../../src/training/engines.ts";
import { startHeartbeat } from "../heartbeat.ts";

const leave = () => process.exit(FAILED_OR_STOPPED);
process.once("SIGTERM", leave).once("SIGINT", leave);

async function main(): Promise<void> {
  const job = TRAINER_JOB.fromEnvironment(process.env);
  const { storeUrl, ...settings } = TRAINER_SETTINGS.fromEnvironment(process.env);
  startHeartbeat();
  const store = await openStore(storeUrl);
  const engine = await openEngine((await readRun(store, job.run)).config.engine, settings);
  try {
    await train(job, engine, {
      store,
      onStep: (done, total) => console.log(JSON.stringify({ step: done, of: total })),
    });
  } finally {
    await engine[Symbol.asyncDispose]();
  }
}

await main().catch(error => process.exit(reportError(error, text => process.stderr.write(text))));
