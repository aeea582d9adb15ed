// The sampler of a run as a deployment has it: the program of its container, at an address of this machine alone, which
// all drivers ask. One that ends, or no longer answers, is started again at the same address, as ECS replaces a task; it
// is told anew what to serve by whoever asks it first.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { ProgramEnd } from "../asl/executors/program.ts";
import { Failure } from "../failure/errors.ts";
import type { OnRunEvent } from "../run/run-events.ts";
import { answersHealth } from "../sampler/serve/health.ts";
import { SAMPLER_SETTINGS } from "../stages/jobs.ts";
import { runContainer } from "./container-process.ts";

export interface ServedSamplerOptions {
  readonly storeUrl: string;
  readonly threads: number;
  /** Of parked caches. */
  readonly cacheBytes: number;
  /** Told of an end that nobody asked for. */
  readonly onEvent: OnRunEvent;
  /** When one that does not answer is ended: ECS's figures for its service when not given. */
  readonly health?: HealthCheck;
}

/** As in a definition of ECS, and its stopTimeout. */
interface HealthCheck {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** Failures in a row from which it is unhealthy. */
  readonly retries: number;
  readonly stopTimeoutSeconds: number;
}

/** What it prints once it can be asked. */
const SERVING = /^serving .* at (http:\S+)$/;
/** When the run ends nobody waits for an answer any more; with a runner that was killed neither. */
const GRACE_SECONDS = 2;
/** To stop: for a step that is being computed, or a model that is being loaded. */
const HEALTH: HealthCheck = { intervalMs: 15_000, timeoutMs: 5_000, retries: 3, stopTimeoutSeconds: 30 };
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;

export class ServedSampler implements AsyncDisposable {
  /** `http://127.0.0.1:port`, the same for as long as this lives. */
  readonly url: string;
  /** Other users of this machine can reach the port; only who has the key is answered. */
  readonly key: string;
  readonly #stop: AbortController;
  readonly #over: Promise<void>;

  private constructor(url: string, key: string, stop: AbortController, over: Promise<void>) {
    this.url = url;
    this.key = key;
    this.#stop = stop;
    this.#over = over;
  }

  /** @throws what the program ended with, when it ends before it serves */
  static async open(options: ServedSamplerOptions): Promise<ServedSampler> {
    const key = randomBytes(32).toString("hex");
    const stop = new AbortController();
    const serving = Promise.withResolvers<string>();
    const { health = HEALTH } = options;
    const start = async (port: number, onServing: (url: string) => void): Promise<ProgramEnd> => {
      const ended = new AbortController();
      const ill = new AbortController();
      const end = await runContainer(
        "sampler",
        {
          environment: SAMPLER_SETTINGS.toEnvironment({
            storeUrl: options.storeUrl,
            threads: options.threads,
            cacheBytes: options.cacheBytes,
            ...{ key, host: "127.0.0.1", port, graceSeconds: GRACE_SECONDS },
          }),
          command: undefined,
          signal: AbortSignal.any([stop.signal, ill.signal]),
          sleep: ms => sleep(ms),
        },
        {
          stopTimeoutSeconds: health.stopTimeoutSeconds,
          onLine: line => {
            const url = SERVING.exec(line)?.[1];
            if (url === undefined) return;
            onServing(url);
            void isSilent(url, health, ended.signal).then(silent => silent && ill.abort());
          },
        },
      );
      ended.abort();
      return ill.signal.aborted ? { error: noAnswer() } : end;
    };
    const first = start(0, serving.resolve);
    const url = await Promise.race([serving.promise, first.then(end => Promise.reject(errorOf(end)))]);
    const over = keepServing(
      first,
      onServing => start(Number(new URL(url).port), onServing),
      stop.signal,
      options,
    );
    return new ServedSampler(url, key, stop, over);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#over;
  }
}

/** Starts it again whenever it ends, until the signal fires and it has ended by that. */
async function keepServing(
  first: Promise<ProgramEnd>,
  start: (onServing: () => void) => Promise<ProgramEnd>,
  signal: AbortSignal,
  { onEvent }: ServedSamplerOptions,
): Promise<void> {
  let end = await first;
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    onEvent({ kind: "trouble", state: "sampler", text: `${errorOf(end).message}; it is started again` });
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    end = await start(() => {
      pauseMs = FIRST_PAUSE_MS;
    });
  }
}

/** @returns true when it has not answered as often as that; false when the signal has fired */
async function isSilent(url: string, health: HealthCheck, signal: AbortSignal): Promise<boolean> {
  for (let failures = 0; failures < health.retries; ) {
    await sleep(health.intervalMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return false;
    failures = (await answersHealth(url, health.timeoutMs)) ? 0 : failures + 1;
  }
  return !signal.aborted;
}

function noAnswer(): Failure {
  return new Failure("SamplerUnavailable", "the sampler no longer answered", { retryable: true });
}

/** A server has no good end of its own. */
function errorOf({ error, exitCode }: ProgramEnd): Error {
  if (error instanceof Error) return error;
  return new Failure("SamplerUnavailable", `the sampler ended with exit code ${exitCode ?? "none"}`, {
    retryable: true,
  });
}
