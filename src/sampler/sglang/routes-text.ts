// Routes as SGLang sends them: base64 of a flat int32 buffer without a shape, [rows, hidden layers, top-k] in row-major
// order and little-endian bytes. The layer axis counts all hidden layers; those without experts are zeros. Our own routes
// have MoE layers only (trajectory/routes.ts).
import type { ModelConfig } from "../../model/config.ts";
import { allocateRoutes, type Routes } from "../../trajectory/routes.ts";

export interface RouteShape {
  /** Hidden layers, with experts or without. */
  readonly layerCount: number;
  readonly moeLayers: readonly number[];
  readonly expertsPerToken: number;
  readonly expertCount: number;
  /** Columns behind the routed experts, in which a server that fuses shared experts names those: ids from E on. */
  readonly sharedExperts?: number;
}

/** @returns undefined for a model without experts */
export function routeShape(
  { layerCount, experts }: Pick<ModelConfig, "layerCount" | "experts">,
  sharedExperts = 0,
): RouteShape | undefined {
  return (
    experts && {
      layerCount,
      sharedExperts,
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
 * The buffer has no shape, so nothing is inferred from its size: it must hold the rows and columns that are expected, and
 * each column an id that can stand there.
 *
 * @param rowCount rows that were asked for
 * @returns routes that still have to be checked (`assertRoutes`), or what is wrong with the buffer, in words
 */
export function decodeRoutes(text: string, rowCount: number, shape: RouteShape): Routes | string {
  const { layerCount, moeLayers, expertsPerToken: k, expertCount, sharedExperts = 0 } = shape;
  const bytes = Buffer.from(text, "base64");
  const columns = k + sharedExperts;
  const expectedBytes = rowCount * layerCount * columns * 4;
  if (bytes.length !== expectedBytes)
    return `${rowCount} rows, ${layerCount} hidden layers and ${columns} experts of int32 have ${expectedBytes} bytes, got ${bytes.length}`;
  const routes = allocateRoutes(rowCount, { layerCount: moeLayers.length, expertsPerToken: k, expertCount });
  const indexOf = new Map(moeLayers.map((layer, index) => [layer, index]));
  for (let row = 0; row < rowCount; row++)
    for (let layer = 0; layer < layerCount; layer++) {
      const index = indexOf.get(layer);
      for (let column = 0; column < columns; column++) {
        const id = bytes.readInt32LE(((row * layerCount + layer) * columns + column) * 4);
        if (index === undefined && id !== 0)
          return `row ${row} has routes in layer ${layer}, which has no experts`;
        if (index === undefined) continue;
        const [from, to] = column < k ? [0, expertCount] : [expertCount, expertCount + sharedExperts];
        if (id < from || id >= to)
          return `row ${row}, layer ${layer}, column ${column} names expert ${id}, expected ${from} to ${to - 1}`;
        if (column < k) routes.ids[(row * moeLayers.length + index) * k + column] = id;
      }
    }
  return routes;
}
