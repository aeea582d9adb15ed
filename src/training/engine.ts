// The contract of whatever trains: ONNX Runtime in this process, or a cluster that is handed the batch.
import type { FileSet, NamedContent } from "../files/content.ts";
import type { ObjectStore } from "../store/object-store.ts";
import type { Method } from "./algorithms/algorithm.ts";
import type { Batch } from "./batch.ts";
import type { Metrics } from "./metrics.ts";

/** A version as it lies in the store. */
export interface StoredVersion {
  readonly version: number;
  /** A model folder in the layout of Hugging Face. */
  readonly policy: FileSet;
  /** What the engine wrote itself; undefined for version 0, which nothing was trained for. */
  readonly state: FileSet | undefined;
  /** A model folder; undefined where the version has no critic. */
  readonly critic: FileSet | undefined;
}

/** All that a step from one version to the next depends on: the same request gives the same version. */
export interface TrainRequest {
  readonly iteration: number;
  /** Audited: every receipt was compared with its tensors. */
  readonly batch: Batch;
  readonly method: Method;
  readonly sampling: { readonly temperature: number };
  /** Episodes that every iteration of the run was to have: schedules count them. */
  readonly planned: { readonly episodes: number };
  readonly seed: string;
  readonly from: StoredVersion;
  /** The version whose policy sampled the batch, where it is another one: one-step asynchrony. */
  readonly sampledBy: StoredVersion | undefined;
  /** Prefix under which an engine leaves what explains a refusal. */
  readonly dumps: string;
}

export interface TrainServices {
  readonly store: ObjectStore;
  readonly onStep?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export interface Trained {
  readonly metrics: Metrics;
  /** What the engine goes on from, and makes the policy of. */
  readonly state: readonly NamedContent[];
  /** A model folder that other runs may start from. */
  readonly critic: readonly NamedContent[];
}

export interface Engine extends AsyncDisposable {
  /** Versions of what computes, by name; part of a run's record. */
  readonly software: Readonly<Record<string, string>>;
  /** @throws InputError naming tensor and step for a number that is not finite; then nothing of a version exists */
  train(request: TrainRequest, services: TrainServices): Promise<Trained>;
  /** The policy of a trained state as a model folder. @param before the policy that the training began with */
  policyOf(state: FileSet, before: FileSet): AsyncIterable<NamedContent>;
}
