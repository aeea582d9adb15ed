// A version as this engine keeps it: a policy in bfloat16, which samplers read, a critic in single precision, and the
// state of the optimizers with the policy in single precision.
import { InputError } from "../../failure/errors.ts";
import type { FileSet, NamedContent } from "../../files/content.ts";
import {
  CONFIG_FILE,
  encodeModelFiles,
  type Model,
  readModel,
  readModelConfig,
  travellingFiles,
} from "../../model/checkpoint.ts";
import { criticFromActor, type Head } from "../../model/parameters.ts";
import type { StoredVersion } from "../engine.ts";
import type { NetworkState } from "./network.ts";
import { decodeNetworkState, decodeParameters, encodeNetworkState } from "./optimizer-file.ts";

const ACTOR_FILE = "actor.safetensors";
const CRITIC_FILE = "critic.safetensors";

/** @throws InputError when files are missing or do not fit each other */
export async function readActor(from: StoredVersion): Promise<NetworkState> {
  if (from.version === 0) return fresh(await readModel(from.policy, "language"));
  const config = await readModelConfig(from.policy);
  return readOptimizer(from, ACTOR_FILE, { config }, "language");
}

/** The critic of a version; of version 0, where none was warmed up, the policy's body with a value head of zeros. */
export async function readCritic(from: StoredVersion, actor: NetworkState): Promise<NetworkState> {
  const { config, parameters } = actor;
  const model =
    from.critic === undefined
      ? { config, parameters: criticFromActor(config, parameters) }
      : await readModel(from.critic, "value");
  return from.version === 0 ? fresh(model) : readOptimizer(from, CRITIC_FILE, model, "value");
}

export function actorFiles(actor: NetworkState): NamedContent[] {
  return [{ path: ACTOR_FILE, body: encodeNetworkState(actor, { withParameters: true }) }];
}

/** The optimizer of a critic, and the critic as a model folder that keeps the config.json it had. */
export async function criticFiles(
  critic: NetworkState,
  { critic: before, policy }: StoredVersion,
): Promise<{ readonly state: NamedContent[]; readonly critic: NamedContent[] }> {
  const config = await (before ?? policy).read(CONFIG_FILE);
  return {
    state: [{ path: CRITIC_FILE, body: encodeNetworkState(critic, { withParameters: false }) }],
    critic: encodeModelFiles(critic.parameters, config, "float32"),
  };
}

/** The policy of a trained state, made when it is asked for. */
export async function* policyFiles(state: FileSet, before: FileSet): AsyncGenerator<NamedContent> {
  const model = { config: await readModelConfig(before) };
  const where = state.where + ACTOR_FILE;
  const parameters = await decodeParameters(state.source(ACTOR_FILE), model, "language", where);
  yield* encodeModelFiles(parameters, await before.read(CONFIG_FILE), "bfloat16");
  yield* travellingFiles(before);
}

/** Version 0 has no optimizer state: training starts with fresh moments there, also after a warm-up. */
function fresh(model: Model): NetworkState {
  return { ...model, moments: new Map(), step: 0 };
}

async function readOptimizer(
  { state, policy }: StoredVersion,
  path: string,
  model: Pick<Model, "config"> & Partial<Model>,
  head: Head,
): Promise<NetworkState> {
  if (state !== undefined) return decodeNetworkState(state.source(path), model, head, state.where + path);
  throw new InputError({
    what: "the engine's state is missing",
    where: policy.where,
    expected: "a folder with manifest.json beside this policy",
    fix: "start a new run from this version's policy",
  });
}
