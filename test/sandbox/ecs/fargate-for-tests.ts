// The fargate provider over the fake, with the definition that the deployment registers, and times for tests.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach } from "vitest";
import { sandboxTaskDefinition } from "../../../src/planning/sandbox-task.ts";
import { containerImage } from "../../../src/sandbox/container-image.ts";
import {
  type FargateOptions,
  FargateProvider,
  type FargateTiming,
} from "../../../src/sandbox/fargate/provider.ts";
import { makeRootFolder } from "../root-folder.ts";
import { EcsFake, type EcsFakeOptions } from "./ecs-fake.ts";
import type { TaskDefinition } from "./ecs-task.ts";

const CLUSTER = "t1";
const IMAGE = "registry/t1/tasks:x";

const QUICK: FargateTiming = {
  creation: { perSecond: 1000, burst: 1000 },
  retryForMs: 30_000,
  pauses: { firstMs: 10, longestMs: 100 },
  looks: { firstMs: 20, longestMs: 100 },
  unknownAfterMs: 1_000,
  connection: {},
};

export interface FargateForTests extends AsyncDisposable {
  readonly ecs: EcsFake;
  readonly provider: FargateProvider;
  /** Another driver of the same cluster. */
  readonly another: (options?: Partial<FargateOptions>) => FargateProvider;
}

/** What the image stands for, made once per test file. */
const folder = mkdtempSync(join(tmpdir(), "t1-fargate-"));
const root = join(folder, "root");
makeRootFolder(root, { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 });
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** @param options.timing replaces single times of tests @param fake beside its cluster */
export async function openFargate(
  options: Partial<FargateOptions> = {},
  fake: Omit<EcsFakeOptions, "cluster"> = {},
): Promise<FargateForTests> {
  const ecs = await EcsFake.open({ cluster: CLUSTER, ...fake });
  ecs.addImage(IMAGE, root);
  const taskDefinition = ecs.register(
    sandboxTaskDefinition({
      ...{ family: "t1-sandbox-x", image: IMAGE, toolkitImage: "registry/t1/sandbox-toolkit:main" },
      ...{ cpu: 1024, memoryMiB: 2048, diskGiB: 21, executionRoleArn: "arn:aws:iam::1:role/pull" },
      environment: {},
    }) as TaskDefinition,
  );
  const providers: FargateProvider[] = [];
  const another = (other: Partial<FargateOptions> = {}): FargateProvider => {
    const provider = new FargateProvider({
      ...{ client: ecs.client(), cluster: CLUSTER, subnets: ["subnet-1"], securityGroups: ["sg-1"] },
      market: "spot-first",
      findImage: async reference => ({ ...containerImage(reference, {}), taskDefinition }),
      ...options,
      ...other,
      timing: { ...QUICK, ...options.timing, ...other.timing },
    });
    providers.push(provider);
    return provider;
  };
  return {
    ...{ ecs, another, provider: another() },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(providers.map(provider => provider[Symbol.asyncDispose]().catch(() => undefined)));
      await ecs[Symbol.asyncDispose]();
    },
  };
}

/** Called at the top of a suite. @returns opens one that ends with its test */
export function openFargatePerTest(): typeof openFargate {
  const opened: FargateForTests[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(one => one[Symbol.asyncDispose]()));
  }, 60_000);
  return async options => {
    const fargate = await openFargate(options);
    opened.push(fargate);
    return fargate;
  };
}
