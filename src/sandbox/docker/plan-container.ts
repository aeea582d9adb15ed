// Where a provider's containers are made.
import type { Lease } from "../sandbox.ts";
import type { ContainerPlan } from "./container.ts";
import type { Engine } from "./engine.ts";
import { ownerOf, thisDriver } from "./ownership.ts";
import { makeListenerFolder, type SandboxFolder } from "./sandbox-folder.ts";

export interface ContainerLocation {
  readonly engine: Engine;
  /** Has one for each sandbox. */
  readonly folder: string;
  readonly toolkit: string;
  readonly creation: { readonly perSecond: number; readonly burst: number };
}

/** Makes the sandbox's folder. */
export function planContainer(
  { toolkit }: Pick<ContainerLocation, "toolkit">,
  folder: SandboxFolder,
  what: { readonly imageId: string; readonly spec: ContainerPlan["spec"]; readonly lease: Lease },
): ContainerPlan {
  return {
    ...{ ...what, name: folder.name, toolkit, driver: thisDriver() },
    ...{ folder: folder.path, listenerFolder: makeListenerFolder(folder, ownerOf(what.lease)) },
  };
}
