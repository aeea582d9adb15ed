// What images hold, as every sandbox of them has it: the layers are the same files for all. It is read in the first one,
// before anything in it was changed, and is what the others are compared with.

import type { DaemonClient } from "../../sandboxd/client.ts";
import { describePaths } from "../../sandboxd/describe-paths.ts";
import { isOfEngine } from "../../sandboxd/difference.ts";
import { parseBody } from "../../sandboxd/parse-body.ts";
import { type ListedEntry, Listing } from "../../sandboxd/protocol.ts";
import { unusable } from "../../sandboxd/set-up.ts";
import type { ContainerImage } from "../container-image.ts";

/** Some megabytes each. */
const KEPT_IMAGES = 32;
const WITNESSES = 100;

interface Known {
  /** JSON of a `Listing`. */
  readonly listing: Uint8Array;
  readonly witnesses: readonly ListedEntry[];
}

export class ImageListings {
  readonly #known = new Map<string, Promise<Known>>();

  /**
   * @param client of a sandbox in which nothing was changed yet
   * @returns JSON of a `Listing` that is true of it
   * @throws InputError when its files cannot be listed
   */
  async findOrRead(image: ContainerImage, client: DaemonClient): Promise<Uint8Array> {
    const known = await this.#known.get(image.id)?.catch(() => undefined);
    if (known !== undefined && (await isTrueOf(client, known))) return known.listing;
    const read = readListing(image, client);
    this.#known.delete(image.id);
    this.#known.set(image.id, read);
    const [oldest] = this.#known.keys();
    if (this.#known.size > KEPT_IMAGES && oldest !== undefined) this.#known.delete(oldest);
    return (await read).listing;
  }
}

async function readListing(image: ContainerImage, client: DaemonClient): Promise<Known> {
  const { value, body } = await client.call({ op: "list" });
  if (value.refused !== undefined) throw unusable(image, value.refused);
  const listing = parseBody(client, body, Listing, "entries of an image");
  return { listing: body, witnesses: chooseWitnesses(listing) };
}

/** From the file that came first to the one that came last, so that every layer of some size has one. */
function chooseWitnesses(listing: Listing): readonly ListedEntry[] {
  const files = listing
    .filter(([path, kind]) => kind === "file" && !isOfEngine(path))
    .sort(([, , , , , a], [, , , , , b]) => (a < b ? -1 : 1));
  const step = Math.ceil(files.length / WITNESSES);
  return files.filter((_, index) => index % step === 0 || index === files.length - 1);
}

/** It is not where the engine copies images for each container, nor when it has unpacked this one anew. */
async function isTrueOf(client: DaemonClient, { witnesses }: Known): Promise<boolean> {
  const paths = witnesses.map(([path]) => path);
  const now = await describePaths(client, paths);
  return witnesses.every(([path, , , , , changed, inode]) => {
    const entry = now.get(path);
    return entry?.changed === changed && entry.inode === inode;
  });
}
