// What images hold. One never changes, so it is looked at once: in a container of its own in which nothing else runs.
import { Failure } from "../../failure/errors.ts";
import { DaemonClient } from "../daemon/client.ts";
import { DriverDoor } from "../daemon/driver-door.ts";
import { makeToken } from "../daemon/handshake.ts";
import { lost, nameOf } from "../daemon/leased-sandbox.ts";
import { parseBody } from "../daemon/parse-body.ts";
import { Listing } from "../daemon/protocol.ts";
import { memoryKills } from "../memory-kills.ts";
import { createContainer, removeContainer, startContainer } from "./container.ts";
import { whyEnded } from "./container-end.ts";
import type { ImageEntry } from "./file-changes.ts";
import { thisDriver } from "./ownership.ts";
import { type Place, planContainer } from "./place.ts";
import { removeSandboxFolder, sandboxFolder } from "./sandbox-folder.ts";

const LISTING_LIFE_MS = 300_000;

export class ImageListings {
  readonly #place: Place;
  readonly #known = new Map<string, Promise<ReadonlyMap<string, ImageEntry>>>();

  constructor(place: Place) {
    this.#place = place;
  }

  list(imageId: string): Promise<ReadonlyMap<string, ImageEntry>> {
    const known = this.#known.get(imageId);
    if (known !== undefined) return known;
    const listing = this.#readImage(imageId);
    this.#known.set(imageId, listing);
    listing.catch(() => this.#known.delete(imageId));
    return listing;
  }

  async #readImage(imageId: string): Promise<ReadonlyMap<string, ImageEntry>> {
    const { engine } = this.#place;
    const id = `listing of ${imageId} by ${thisDriver()}`;
    const lease = { id, generation: 1, deadlineMs: Date.now() + LISTING_LIFE_MS };
    const folder = sandboxFolder(this.#place.folder, lease);
    const plan = planContainer(this.#place, folder, {
      ...{ imageId, spec: { network: "none", diskBytes: 1 << 20 } as const, lease },
    });
    const container = await createContainer(engine, plan);
    if (container === undefined)
      throw new Failure("SandboxUnavailable", `${folder.name} is there already`, { retryable: true });
    const life = { what: nameOf(lease), killsBefore: memoryKills() };
    const whyGone = () => whyEnded(engine, container, life).catch(() => undefined);
    const way = { folder: plan.doorFolder, token: makeToken(), isGrant: true, whyGone };
    const door = await DriverDoor.open(way);
    const client = new DaemonClient(() => door.connect());
    try {
      await startContainer(engine, container, plan);
      const { body } = await client.call({ op: "list" });
      const listing = parseBody(client, body, Listing, "entries of an image");
      return new Map(listing.map(([path, kind, mode, uid, gid]) => [path, { kind, mode, uid, gid }]));
    } finally {
      client.lose(lost(nameOf(lease), "it was looked at"));
      door.close();
      await removeContainer(engine, container).finally(() => removeSandboxFolder(folder));
    }
  }
}
