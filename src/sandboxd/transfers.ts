// Uploads and downloads of a daemon, each in as many pieces as it needs.
import { statSync } from "node:fs";
import { emptyFolder, makeFolder, removeEntry } from "./folders.ts";
import { Packing } from "./pack.ts";
import { type Answer, PIECE_BYTES, type RequestOf, type ResponseOf } from "./protocol.ts";
import { refusable, refusalOf } from "./refusal.ts";
import { Unpacking } from "./unpack.ts";

interface Download {
  readonly packing: Packing;
  leftBytes: number;
}

export class Transfers {
  readonly #uploads = new Map<string, Unpacking>();
  readonly #downloads = new Map<string, Download>();

  async upload(asked: RequestOf<"upload">, body: Uint8Array): Promise<Answer<"upload">> {
    const { transfer, folder, emptied, removed, only, keepOwners, isLast } = asked;
    const prepared = refusable(() => {
      emptied.forEach(emptyFolder);
      removed.forEach(removeEntry);
      makeFolder(folder);
    });
    if (prepared.refused !== undefined) return prepared;
    this.#uploads.set(transfer, new Unpacking(folder, { keepOwners, only }));
    return this.uploadMore({ op: "upload-more", transfer, isLast }, body);
  }

  async uploadMore(
    { transfer, isLast }: RequestOf<"upload-more">,
    body: Uint8Array,
  ): Promise<Answer<"upload-more">> {
    const unpacking = this.#uploads.get(transfer);
    if (unpacking === undefined) throw new Error(`no such upload: ${transfer}`);
    await unpacking.write(body);
    if (!isLast) return {};
    this.#uploads.delete(transfer);
    try {
      await unpacking.end();
      return {};
    } catch (error) {
      return refusalOf(error);
    }
  }

  async download({ transfer, folder, paths, limitBytes }: RequestOf<"download">): Promise<ResponseOf> {
    const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
    if (!isFolder) return { value: { state: "missing" } };
    this.#downloads.set(transfer, { packing: new Packing(folder, { paths }), leftBytes: limitBytes });
    return this.downloadMore(transfer);
  }

  async downloadMore(transfer: string): Promise<ResponseOf<"download-more">> {
    const download = this.#downloads.get(transfer);
    if (download === undefined) throw new Error(`no such download: ${transfer}`);
    try {
      const body = await download.packing.read(PIECE_BYTES);
      if (body === undefined) {
        this.#downloads.delete(transfer);
        return { value: { state: "done" } };
      }
      download.leftBytes -= body.length;
      if (download.leftBytes >= 0) return { value: { state: "more" }, body };
      download.packing.stop();
      this.#downloads.delete(transfer);
      return { value: { state: "oversized" } };
    } catch (error) {
      this.#downloads.delete(transfer);
      return { value: { state: "refused", ...refusalOf(error) } };
    }
  }

  stopDownload(transfer: string): void {
    this.#downloads.get(transfer)?.packing.stop();
    this.#downloads.delete(transfer);
  }
}
