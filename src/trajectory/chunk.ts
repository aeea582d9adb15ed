// A contiguous token stream of an episode with all that training needs, and its form on disk. Most episodes have one
// chunk; a new one opens where the context was compacted.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import {
  decodeSafetensors,
  encodeSafetensors,
  type RawTensor,
  type SafetensorsFile,
} from "../safetensors/format.ts";
import { rawTensor, tensorArray } from "../safetensors/numbers.ts";
import type { RouteLayout, Routes } from "./routes.ts";

export interface Chunk {
  /** [N] */
  readonly tokens: Int32Array;
  /** [N] 1 where the sampler produced the token. */
  readonly mask: Uint8Array;
  /** [N] the sampler's log-prob of a sampled token, 0 elsewhere; nats. */
  readonly logProbs: Float32Array;
  /** N − 1 rows. Left out where no expert was chosen: in a dense model, and in a demonstration. */
  readonly routes?: Routes | undefined;
  readonly turns: readonly Turn[];
  /** Recorded with its receipts, but no part of any loss: the run's setting `agent.summary.train`. */
  readonly untrained?: true;
}

/**
 * One answer of the sampler inside a chunk: tokens [start, end), and the route rows [routesStart, end − 1) it brought.
 */
export interface Turn {
  readonly start: number;
  readonly end: number;
  readonly routesStart: number;
  readonly policyVersion: number;
  /** 32 bytes (receipt.ts) */
  readonly receipt: Uint8Array;
}

const FORMAT = "t1-trajectory-2";
const Metadata = z.object({
  format: z.literal(FORMAT),
  /** Routes count MoE layers; readers that want hidden layers insert the dense ones. Left out without routes. */
  layer_axis: z.literal("moe").optional(),
  expert_count: z.coerce.number().int().positive().optional(),
  chunk_count: z.coerce.number().int().nonnegative(),
  /** Indices with commas between; left out where every chunk is trained. */
  untrained_chunks: z
    .string()
    .regex(/^\d+(,\d+)*$/)
    .optional(),
});
const TURN_FIELDS = 4;
const RECEIPT_BYTES = 32;

/** `arrays.safetensors` of an attempt. @param layout undefined for chunks without routes */
export function encodeChunks(chunks: readonly Chunk[], layout: RouteLayout | undefined): Uint8Array {
  const tensors: (readonly [string, RawTensor])[] = [];
  chunks.forEach(({ tokens, mask, logProbs, routes, turns }, index) => {
    const at = `chunk.${index}`;
    const turnTable = turns.flatMap(turn => [turn.start, turn.end, turn.routesStart, turn.policyVersion]);
    const receipts = new Uint8Array(turns.length * RECEIPT_BYTES);
    turns.forEach((turn, row) => {
      receipts.set(turn.receipt, row * RECEIPT_BYTES);
    });
    tensors.push(
      [`${at}.tokens`, rawTensor("I32", [tokens.length], tokens)],
      [`${at}.mask`, rawTensor("U8", [mask.length], mask)],
      [`${at}.log_probs`, rawTensor("F32", [logProbs.length], logProbs)],
      ...(routes === undefined ? [] : [[`${at}.routes`, rawRoutes(routes)] as const]),
      [`${at}.turns`, rawTensor("I32", [turns.length, TURN_FIELDS], Int32Array.from(turnTable))],
      [`${at}.receipts`, rawTensor("U8", [turns.length, RECEIPT_BYTES], receipts)],
    );
  });
  const untrained = chunks.flatMap((chunk, index) => (chunk.untrained ? [index] : []));
  const metadata = {
    format: FORMAT,
    ...(layout && { layer_axis: "moe", expert_count: `${layout.expertCount}` }),
    chunk_count: `${chunks.length}`,
    ...(untrained.length > 0 && { untrained_chunks: untrained.join(",") }),
  };
  return encodeSafetensors(tensors, metadata);
}

/**
 * @throws InputError when the file is broken or of another format; whether its numbers are right is audit.ts' concern
 */
export function decodeChunks(bytes: Uint8Array, name: string): Chunk[] {
  const file = decodeSafetensors(bytes, name);
  const metadata = Metadata.safeParse(file.metadata);
  if (!metadata.success) {
    throw new InputError({
      what: "not a trajectory",
      where: name,
      expected: `metadata format ${FORMAT}`,
      fix: "run the episode again",
    });
  }
  const { chunk_count: length, untrained_chunks = "" } = metadata.data;
  const untrained = new Set(untrained_chunks.split(",").filter(Boolean).map(Number));
  return Array.from({ length }, (_, index) => ({
    ...decodeChunk(file, `chunk.${index}`),
    ...(untrained.has(index) && { untrained: true as const }),
  }));
}

function decodeChunk(file: SafetensorsFile, at: string): Chunk {
  const turnTable = tensorArray(file, `${at}.turns`, "I32").data;
  const receipts = tensorArray(file, `${at}.receipts`, "U8").data;
  const routes = file.tensors.get(`${at}.routes`);
  return {
    tokens: tensorArray(file, `${at}.tokens`, "I32").data,
    mask: tensorArray(file, `${at}.mask`, "U8").data,
    logProbs: tensorArray(file, `${at}.log_probs`, "F32").data,
    ...(routes && { routes: decodeRoutes(file, `${at}.routes`, routes.dtype === "U16" ? "U16" : "U8") }),
    turns: Array.from({ length: turnTable.length / TURN_FIELDS }, (_, row) => ({
      start: turnTable[row * TURN_FIELDS],
      end: turnTable[row * TURN_FIELDS + 1],
      routesStart: turnTable[row * TURN_FIELDS + 2],
      policyVersion: turnTable[row * TURN_FIELDS + 3],
      receipt: receipts.slice(row * RECEIPT_BYTES, (row + 1) * RECEIPT_BYTES),
    })),
  };
}

function rawRoutes({ rowCount, layerCount, expertsPerToken, ids }: Routes): RawTensor {
  return rawTensor(ids instanceof Uint8Array ? "U8" : "U16", [rowCount, layerCount, expertsPerToken], ids);
}

function decodeRoutes(file: SafetensorsFile, name: string, dtype: "U8" | "U16"): Routes {
  const { data: ids, shape } = tensorArray(file, name, dtype);
  const [rowCount, layerCount, expertsPerToken] = shape;
  return { rowCount, layerCount, expertsPerToken, ids };
}
