// A network in training: its parameters and moments, scored and stepped through compiled graphs. Sessions outlive the
// network: compiling takes longer than a step, and every iteration trains the same shape.
import type { Model } from "../../model/checkpoint.ts";
import type { ModelConfig } from "../../model/config.ts";
import { isDecayed, type Parameters } from "../../model/parameters.ts";
import { adamWStep, clipCoefficient, globalNorm, type Moments } from "../../tensor/adamw.ts";
import { gradients } from "../../tensor/backward.ts";
import type { Graph, Tensor } from "../../tensor/graph.ts";
import { type Feeds, type Outputs, Session, type SessionOptions } from "../../tensor/session.ts";
import type { StepSettings } from "../adam-settings.ts";
import { assertFinite, LARGEST_BF16 } from "./finite.ts";

export interface NetworkState extends Model {
  /** By parameter; missing means zeros. */
  readonly moments: ReadonlyMap<string, Moments>;
  /** Optimizer steps taken. */
  readonly step: number;
}

/** Compiled graphs by name and model shape, kept for as long as the trainer lives. */
export class Sessions implements AsyncDisposable {
  readonly #sessions = new Map<string, Promise<Session>>();
  readonly #options: Pick<SessionOptions, "threads" | "device">;

  constructor(options: Pick<SessionOptions, "threads" | "device">) {
    this.#options = options;
  }

  get(name: string, config: ModelConfig, build: () => Graph): Promise<Session> {
    const key = `${name} ${JSON.stringify(config)}`;
    const known = this.#sessions.get(key);
    if (known !== undefined) return known;
    const opened = Session.open(build(), this.#options);
    this.#sessions.set(key, opened);
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of this.#sessions.values()) await (await session)[Symbol.asyncDispose]();
  }
}

/** Adds the reverse pass of `loss` with outputs `grad.<parameter>`. */
export function outputGradients(graph: Graph, loss: Tensor, parameters: ReadonlyMap<string, Tensor>): void {
  const names = [...parameters.keys()];
  gradients(loss, [...parameters.values()]).forEach((gradient, index) => {
    graph.output(`grad.${names[index]}`, gradient);
  });
}

export class Network {
  readonly config: ModelConfig;
  readonly #parameters: Parameters;
  readonly #moments: Map<string, Moments>;
  readonly #sums = new Map<string, Float32Array>();
  #step: number;

  /** What the network is called where something is wrong with it. */
  readonly #name: string;

  /** Takes over the arrays of `state` and changes them in place. @throws NotFinite */
  constructor({ config, parameters, moments, step }: NetworkState, name = "policy") {
    this.config = config;
    this.#name = name;
    this.#parameters = parameters;
    this.#moments = new Map(moments);
    this.#step = step;
    this.assertFinite(`reading the ${name}`);
  }

  get state(): NetworkState {
    return { config: this.config, parameters: this.#parameters, moments: this.#moments, step: this.#step };
  }

  /**
   * @param numbers outputs that have to be finite
   * @throws NotFinite with the feeds of this run
   */
  async run(session: Session, feeds: Feeds, numbers: readonly string[]): Promise<Outputs> {
    const outputs = await session.run({ ...Object.fromEntries(this.#parameters), ...feeds });
    const during = `the ${this.#name} was run before optimizer step ${this.#step + 1}`;
    for (const name of numbers) assertFinite(name, outputs.f32(name).data, during, { feeds });
    return outputs;
  }

  /**
   * Every parameter and moment. Parameters have to be finite in bfloat16, too, in which samplers read them.
   *
   * @throws NotFinite
   */
  assertFinite(during: string): void {
    for (const [name, { data }] of this.#parameters)
      assertFinite(name, data, during, { limit: LARGEST_BF16 });
    for (const [name, { first, second }] of this.#moments) {
      assertFinite(`first.${name}`, first, during);
      assertFinite(`second.${name}`, second, during);
    }
  }

  /** Adds the gradients of one micro-batch to those of the step under way. @throws NotFinite */
  accumulate(outputs: Outputs, feeds: Feeds = {}): void {
    const during = `gradients of the ${this.#name} were added up for optimizer step ${this.#step + 1}`;
    for (const name of this.#parameters.keys()) {
      const { data } = outputs.f32(`grad.${name}`);
      assertFinite(`grad.${name}`, data, during, { feeds });
      const sum = this.#sums.get(name);
      if (sum === undefined) this.#sums.set(name, data);
      else for (let i = 0; i < sum.length; i++) sum[i] += data[i];
    }
  }

  /**
   * One AdamW step over the accumulated gradients.
   *
   * @returns their norm before clipping
   * @throws NotFinite before anything changes when the norm is not finite, or after the step for what it made
   */
  step({ clipNorm, weightDecay, ...adam }: StepSettings): number {
    const norm = globalNorm(this.#sums.values());
    const during = `the ${this.#name} took optimizer step ${this.#step + 1}`;
    assertFinite("gradient norm", Float32Array.of(norm), during);
    this.#step++;
    const gradientScale = clipCoefficient(norm, clipNorm);
    for (const [name, { data, shape }] of this.#parameters) {
      const gradient = this.#sums.get(name);
      if (gradient === undefined) continue;
      const settings = {
        ...adam,
        weightDecay: isDecayed(shape) ? weightDecay : 0,
        step: this.#step,
        gradientScale,
      };
      adamWStep(data, gradient, this.#momentsOf(name, data.length), settings);
    }
    this.#sums.clear();
    this.assertFinite(during);
    return norm;
  }

  #momentsOf(name: string, length: number): Moments {
    const known = this.#moments.get(name);
    if (known !== undefined) return known;
    const zero = { first: new Float32Array(length), second: new Float32Array(length) };
    this.#moments.set(name, zero);
    return zero;
  }
}
