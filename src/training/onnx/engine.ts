// Trains in this process with ONNX Runtime. `train` blocks its thread while a graph runs: give it one of its own.
import "../../tensor/no-telemetry.ts";
import * as ort from "onnxruntime-node";
import { InputError } from "../../failure/errors.ts";
import type { ImitationMethod } from "../algorithms/algorithm.ts";
import type { Batch } from "../batch.ts";
import type { Engine, Trained, TrainRequest, TrainServices } from "../engine.ts";
import type { EngineOptions } from "../engines.ts";
import { NotFinite, refuse } from "./finite.ts";
import { Network, Sessions } from "./network.ts";
import { trainPolicy } from "./train-policy.ts";
import { trainSft } from "./train-sft.ts";
import { actorFiles, criticFiles, policyFiles, readActor, readCritic } from "./version-files.ts";

/** Compiled graphs are kept from one iteration to the next. */
export function createOnnxEngine(options: EngineOptions): Engine {
  const sessions = new Sessions(options);
  return {
    software: { onnxruntime: ort.env.versions.common },
    train: async (request, services) => {
      try {
        return await train(request, services, sessions);
      } catch (error) {
        if (!(error instanceof NotFinite)) throw error;
        const { iteration, from, sampledBy, seed, sampling, method } = request;
        const about = {
          iteration,
          from: from.version,
          sampledBy: sampledBy?.version,
          seed,
          sampling,
          settings: method.settings,
        };
        throw await refuse(error, about, { store: services.store, prefix: request.dumps });
      }
    },
    policyOf: policyFiles,
    [Symbol.asyncDispose]: () => sessions[Symbol.asyncDispose](),
  };
}

async function train(
  request: TrainRequest,
  { store: _, ...progress }: TrainServices,
  sessions: Sessions,
): Promise<Trained> {
  const { batch, method, from, sampledBy, iteration, seed } = request;
  const actor = new Network(await readActor(from), "policy");
  if (method.learnsFrom === "demonstrations") {
    const { settings, schedule } = method;
    const metrics = await trainSft(demonstrationsOf(batch, method), actor, {
      ...{ settings, schedule: schedule(request.planned), sessions, seed },
      ...progress,
    });
    return { metrics, state: actorFiles(actor.state), critic: [] };
  }
  const critic = method.critic && new Network(await readCritic(from, actor.state), "critic");
  const behaviour = sampledBy && new Network(await readActor(sampledBy), "policy that sampled");
  const { temperature } = request.sampling;
  const networks = { actor, critic, behaviour };
  const metrics = await trainPolicy(batch, networks, {
    ...{ method, iteration, temperature, sessions, seed },
    ...progress,
  });
  const own = critic ? await criticFiles(critic.state, from) : { state: [], critic: [] };
  return { metrics, state: [...actorFiles(actor.state), ...own.state], critic: own.critic };
}

function demonstrationsOf({ episodes }: Batch, { settings }: ImitationMethod) {
  const good = episodes.filter(({ reward }) => reward >= settings.minReward).flatMap(({ chunks }) => chunks);
  if (good.length > 0) return good;
  throw new InputError({
    what: "no demonstration can be trained on",
    expected: `one with reward ${settings.minReward}`,
    fix: "lower training.minReward",
  });
}
