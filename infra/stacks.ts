// All stacks of a deployment and what they need of each other.
import { type App, Tags } from "aws-cdk-lib";
import type { DeploymentConfig } from "./config.ts";
import { EgressStack } from "./stacks/egress.ts";
import { ImagesStack } from "./stacks/images.ts";
import { NetworkStack } from "./stacks/network.ts";
import { ObservabilityStack } from "./stacks/observability.ts";
import { PipelineStack } from "./stacks/pipeline.ts";
import { PullEndpointsStack } from "./stacks/pull-endpoints.ts";
import { SamplerStack } from "./stacks/sampler.ts";
import { SandboxesStack } from "./stacks/sandboxes.ts";
import { StorageStack } from "./stacks/storage.ts";
import { TrainingStack } from "./stacks/training.ts";

export function addStacks(app: App, config: DeploymentConfig) {
  const named = (part: string): string => `${config.name}-${part}`;
  const storage = new StorageStack(app, named("storage"), { config });
  const { store, logs } = storage;
  const network = new NetworkStack(app, named("network"), { config, store, logs });
  const pullEndpoints = new PullEndpointsStack(app, named("pull-endpoints"), { network });
  const images = new ImagesStack(app, named("images"), { config, store });
  const sandboxes = new SandboxesStack(app, named("sandboxes"), { config, store, network, images });
  const { egress } = config.network;
  if (egress.profile === "proxy")
    new EgressStack(app, named("egress"), { config, domains: egress.domains, network, images, sandboxes });
  const sampler = new SamplerStack(app, named("sampler"), { config, store, network, images, sandboxes });
  const training = new TrainingStack(app, named("training"), { config, store, network, images });
  const pipeline = new PipelineStack(app, named("pipeline"), {
    config,
    store,
    network,
    images,
    sandboxes,
    training,
  });
  const observability = new ObservabilityStack(app, named("observability"), { config, sandboxes, pipeline });
  Tags.of(app).add("t1:deployment", config.name);
  return {
    storage,
    network,
    pullEndpoints,
    images,
    sandboxes,
    sampler,
    training,
    pipeline,
    observability,
  };
}
