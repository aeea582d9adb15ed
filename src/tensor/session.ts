// Runs a graph with ONNX Runtime. `run` blocks its thread while it computes (onnxruntime-node 1.30), so trainer and
// sampler live in worker threads. Buffers are read in place; they must not be shared memory.
import "./no-telemetry.ts";
import * as ort from "onnxruntime-node";
import { InputError, InvariantError } from "../failure/errors.ts";
import type { Graph } from "./graph.ts";
import { encodeModel } from "./onnx-model.ts";

type Numbers = Float32Array | Int32Array | BigInt64Array;

/** An array with its shape, row-major. */
export interface NdArray<A extends Numbers = Numbers> {
  readonly data: A;
  readonly shape: readonly number[];
}

export type Feeds = Readonly<Record<string, NdArray>>;

/** Where a graph is computed. */
type Device = "cpu" | "cuda";

export interface SessionOptions {
  /** Threads of one operator. The same count gives the same bytes. */
  readonly threads: number;
  /** Whether idle threads wait busily: faster steps, but a core less for everybody else. */
  readonly spin?: boolean;
  /** `cpu` when not given. On `cuda` the same bytes are not promised from one run to the next. */
  readonly device?: Device;
}

export class Session implements AsyncDisposable {
  readonly #session: ort.InferenceSession;
  readonly #outputs: readonly string[];

  private constructor(session: ort.InferenceSession, outputs: readonly string[]) {
    this.#session = session;
    this.#outputs = outputs;
  }

  /** @throws InputError when this machine cannot compute on the device */
  static async open(
    graph: Graph,
    { threads, spin = false, device = "cpu" }: SessionOptions,
  ): Promise<Session> {
    const session = await ort.InferenceSession.create(encodeModel(graph), {
      executionProviders: [device],
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      graphOptimizationLevel: "all",
      enableCpuMemArena: true,
      // Memory patterns double the peak when sizes change from run to run, and save no time.
      enableMemPattern: false,
      logSeverityLevel: 3,
      extra: { session: { intra_op: { allow_spinning: spin ? "1" : "0" } } },
    }).catch(cause => {
      if (device === "cpu") throw cause;
      throw new InputError(
        {
          what: "cannot compute on a GPU",
          expected: `ONNX Runtime's CUDA provider with the libraries it needs (${(cause as Error).message})`,
          fix: "use the trainer's image (containers/trainer), or compute on the processor: T1_DEVICE=cpu",
        },
        { cause },
      );
    });
    return new Session(
      session,
      graph.outputs.map(output => output.name.slice("out.".length)),
    );
  }

  /** @returns every output of the graph by name; integer outputs as Int32Array or BigInt64Array */
  async run(feeds: Feeds): Promise<Outputs> {
    const tensors = Object.fromEntries(
      Object.entries(feeds).map(([name, array]) => [`in.${name}`, toTensor(name, array)]),
    );
    const results = await this.#session.run(tensors);
    return new Outputs(new Map(this.#outputs.map(name => [name, fromTensor(results[`out.${name}`])])));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session.release();
  }
}

/** Results of one run by output name. */
export class Outputs {
  readonly #arrays: ReadonlyMap<string, NdArray>;

  constructor(arrays: ReadonlyMap<string, NdArray>) {
    this.#arrays = arrays;
  }

  f32(name: string): NdArray<Float32Array> {
    const array = this.#get(name);
    if (!(array.data instanceof Float32Array)) throw new InvariantError("output is not f32", { name });
    return { data: array.data, shape: array.shape };
  }

  i32(name: string): NdArray<Int32Array> {
    const array = this.#get(name);
    if (!(array.data instanceof Int32Array)) throw new InvariantError("output is not i32", { name });
    return { data: array.data, shape: array.shape };
  }

  #get(name: string): NdArray {
    const array = this.#arrays.get(name);
    if (array === undefined)
      throw new InvariantError("the graph has no such output", { name, known: [...this.#arrays.keys()] });
    return array;
  }
}

function toTensor(name: string, { data, shape }: NdArray): ort.Tensor {
  const size = shape.reduce((product, dim) => product * dim, 1);
  if (size !== data.length)
    throw new InvariantError("feed has another size than its shape", { name, shape, length: data.length });
  if (data instanceof Float32Array) return new ort.Tensor("float32", data, shape);
  if (data instanceof Int32Array) return new ort.Tensor("int32", data, shape);
  return new ort.Tensor("int64", data, shape);
}

function fromTensor(tensor: ort.Tensor): NdArray {
  const { data, dims } = tensor;
  if (data instanceof Float32Array || data instanceof Int32Array || data instanceof BigInt64Array)
    return { data, shape: dims };
  throw new InvariantError("outputs are f32, i32 or i64", { type: tensor.type });
}
