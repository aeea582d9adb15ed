// The stages that a deployment calls as Lambda functions, called in this process with settings of this machine.
import { setTimeout as sleep } from "node:timers/promises";
import type { LambdaFunction } from "../asl/executors/lambda.ts";
import { InvariantError } from "../failure/errors.ts";
import { DEFAULT_SHAPE } from "../planning/default-deployment.ts";
import { close } from "../stages/close.ts";
import { nextStep } from "../stages/next-step.ts";
import { plan } from "../stages/plan.ts";
import { preflight } from "../stages/preflight.ts";
import { type PrepareServices, prepare } from "../stages/prepare.ts";
import { publish } from "../stages/publish.ts";
import { score } from "../stages/score.ts";
import { callStage, type StageServices } from "../stages/stage.ts";
import { summarise } from "../stages/summarise.ts";
import type { ObjectStore } from "../store/object-store.ts";
import type { SharedByDrivers } from "./shared-by-drivers.ts";

type Handler = LambdaFunction["handler"];

/** Below the time limit of the function: the machine asks again for images that take longer. */
const PREPARE_TIMEOUT_MS = 600_000;

export interface FunctionsOptions {
  readonly store: ObjectStore;
  readonly shared: Pick<SharedByDrivers, "prepared">;
  readonly episodesPerDriver: number;
}

/** @returns what is called for each function of a deployment, by the name of its folder in lambdas/ */
export function functionsHere({
  store,
  shared,
  episodesPerDriver,
}: FunctionsOptions): Record<string, Handler> {
  const makeReady: PrepareServices["makeReady"] = async phase => {
    const ready = shared.prepared(phase).then(() => 0);
    return Promise.race([ready, sleep(PREPARE_TIMEOUT_MS, 1, { ref: false })]);
  };
  const services = ({ signal }: { readonly signal: AbortSignal }): StageServices => ({
    ...{ store, signal },
    // A laptop has no dashboard, and its prices are estimates anyway.
    onMetrics: () => {},
    onWarning: () => {},
  });
  return {
    preflight: (event, context) => callStage(preflight, event, undefined, services(context)),
    "next-step": (event, context) => callStage(nextStep, event, { shape: DEFAULT_SHAPE }, services(context)),
    plan: (event, context) => callStage(plan, event, { episodesPerDriver }, services(context)),
    prepare: (event, context) => callStage(prepare, event, undefined, { ...services(context), makeReady }),
    score: (event, context) => callStage(score, event, undefined, services(context)),
    close: (event, context) => callStage(close, event, undefined, services(context)),
    publish: (event, context) => callStage(publish, event, { episodesPerDriver }, services(context)),
    summarise: (event, context) => callStage(summarise, event, { episodesPerDriver }, services(context)),
  };
}

/** The functions that the assembly's machines call, with the time limits of the deployment. */
export function withTimeLimits(
  handlers: Readonly<Record<string, Handler>>,
  functions: Readonly<Record<string, { readonly timeoutSeconds: number }>>,
): Record<string, LambdaFunction> {
  return Object.fromEntries(
    Object.entries(handlers).map(([name, handler]) => {
      const timeoutSeconds = functions[name]?.timeoutSeconds;
      if (timeoutSeconds === undefined) throw new InvariantError("a stage has no function", { name });
      return [name, { handler, timeoutSeconds }];
    }),
  );
}
