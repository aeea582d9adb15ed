// Routes as SGLang sends them: base64 of a flat int32 buffer without a shape, [rows, hidden layers, top-k] in row-major
// order and little-endian bytes. The layer axis counts all hidden layers; those without experts are zeros. Ours have
// MoE layers only (trajectory/routes.ts).
import type { ModelConfig } from "../../model/config.ts";
import { allocateRoutes, type Routes } from "../../trajectory/routes.ts";

export interface RouteShape {
  /** Hidden layers, with experts or without. */
  readonly layerCount: number;
  readonly moeLayers: readonly number[];
  readonly expertsPerToken: number;
  readonly expertCount: number;
}

/** @returns undefined for a model without experts */
export function routeShape({
  layerCount,
  experts,
}: Pick<ModelConfig, "layerCount" | "experts">): RouteShape | undefined {
  return (
    experts && {
      layerCount,
      moeLayers: experts.layers,
      expertsPerToken: experts.perToken,
      expertCount: experts.count,
    }
  );
}

export function encodeRoutes(
  routes: Routes,
  { layerCount, moeLayers, expertsPerToken: k }: RouteShape,
): string {
  const all = new Int32Array(routes.rowCount * layerCount * k);
  for (let row = 0; row < routes.rowCount; row++)
    moeLayers.forEach((layer, index) => {
      const from = (row * moeLayers.length + index) * k;
      all.set(routes.ids.subarray(from, from + k), (row * layerCount + layer) * k);
    });
  return Buffer.from(all.buffer).toString("base64");
}

/**
 * @param rowCount rows that were asked for; the buffer has to have exactly as many
 * @returns routes that still have to be checked (`assertRoutes`), or what is wrong with the buffer, in words
 */
export function decodeRoutes(text: string, rowCount: number, shape: RouteShape): Routes | string {
  const { layerCount, moeLayers, expertsPerToken: k, expertCount } = shape;
  const bytes = Buffer.from(text, "base64");
  const routes = allocateRoutes(rowCount, { layerCount: moeLayers.length, expertsPerToken: k, expertCount });
  // Servers that fuse shared experts into the choice send more columns; those come after the k routed ones.
  const columns = rowCount === 0 ? k : bytes.length / 4 / (rowCount * layerCount);
  if (
    !Number.isInteger(columns) ||
    columns < k ||
    columns > 2 * k + 8 ||
    (rowCount === 0 && bytes.length > 0)
  )
    return `${bytes.length} bytes are no int32 array of ${rowCount} rows, ${layerCount} hidden layers and ${k} experts`;
  const isMoe = new Set(moeLayers);
  for (let row = 0; row < rowCount; row++)
    for (let layer = 0, index = 0; layer < layerCount; layer++) {
      const at = (row * layerCount + layer) * columns;
      for (let choice = 0; choice < k; choice++) {
        const id = bytes.readInt32LE((at + choice) * 4);
        if (id < 0 || id >= expertCount)
          return `row ${row}, layer ${layer} names expert ${id} of ${expertCount}`;
        if (isMoe.has(layer)) routes.ids[(row * moeLayers.length + index) * k + choice] = id;
        else if (id !== 0) return `row ${row} has routes in layer ${layer}, which has no experts`;
      }
      if (isMoe.has(layer)) index++;
    }
  return routes;
}
