import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allocateRoutes } from "../../trajectory/routes.ts";
import { decodeRoutes, encodeRoutes, type RouteShape } from "./routes-text.ts";

const shape = fc
  .record({
    layerCount: fc.integer({ min: 1, max: 5 }),
    expertsPerToken: fc.integer({ min: 1, max: 3 }),
    expertCount: fc.constantFrom(4, 256, 300),
    skipped: fc.array(fc.nat(4), { maxLength: 4 }),
  })
  .map(({ layerCount, skipped, ...rest }) => ({
    ...rest,
    layerCount,
    moeLayers: Array.from({ length: layerCount }, (_, layer) => layer).filter(
      layer => !skipped.includes(layer),
    ),
  }));

describe("routes as text", () => {
  it("are SGLang's int32 buffer: rows, hidden layers, choices; layers without experts are zeros", () => {
    // By hand: 2 rows, 3 hidden layers of which the second has experts, 2 choices.
    const model: RouteShape = { layerCount: 3, moeLayers: [1], expertsPerToken: 2, expertCount: 300 };
    const routes = allocateRoutes(2, { layerCount: 1, expertsPerToken: 2, expertCount: 300 });
    routes.ids.set([299, 1, 2, 3]);
    const bytes = Buffer.alloc(2 * 3 * 2 * 4);
    [299, 1].forEach((id, choice) => {
      bytes.writeInt32LE(id, (0 * 6 + 2 + choice) * 4);
    });
    [2, 3].forEach((id, choice) => {
      bytes.writeInt32LE(id, (1 * 6 + 2 + choice) * 4);
    });
    expect(encodeRoutes(routes, model)).toBe(bytes.toString("base64"));
  });

  it("come back as they were, whatever the model", () => {
    fc.assert(
      fc.property(shape, fc.nat(6), fc.infiniteStream(fc.nat(255)), (model, rowCount, numbers) => {
        const layout = { ...model, layerCount: model.moeLayers.length };
        const routes = allocateRoutes(rowCount, layout);
        for (let at = 0; at < routes.ids.length; at++)
          routes.ids[at] = (numbers.next().value ?? 0) % model.expertCount;
        expect(decodeRoutes(encodeRoutes(routes, model), rowCount, model)).toEqual(routes);
      }),
    );
  });

  const model: RouteShape = { layerCount: 2, moeLayers: [0], expertsPerToken: 2, expertCount: 8 };
  const encode = (ids: readonly number[]) => Buffer.from(Int32Array.from(ids).buffer).toString("base64");

  it("lose the columns of shared experts where the client was told of them, and only then", () => {
    const fused = encode([1, 2, 8, 0, 0, 0, 3, 4, 8, 0, 0, 0]);
    const routes = { rowCount: 2, ids: Uint8Array.of(1, 2, 3, 4) };
    expect(decodeRoutes(fused, 2, { ...model, sharedExperts: 1 })).toMatchObject(routes);
    expect(decodeRoutes(fused, 2, model)).toMatch(/have 32 bytes, got 48/);
    expect(decodeRoutes(fused, 3, model)).toMatch(/has no experts|names expert/);
  });

  it("are refused when rows of another width have the size that was expected", () => {
    // Two rows of 2 + 2 columns have the bytes of four rows of 2: only the ids can tell.
    const four = encode([1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0, 7, 1, 0, 0]);
    expect(decodeRoutes(four, 2, { ...model, sharedExperts: 2 })).toMatch(
      /row 0, layer 0, column 2 names expert 0, expected 8 to 9/,
    );
  });

  it("are never read from a buffer of any other size", () => {
    const counts = fc.tuple(fc.nat(40), fc.nat(5), fc.nat(2));
    fc.assert(
      fc.property(counts, ([size, rowCount, sharedExperts]) => {
        const columns = model.expertsPerToken + sharedExperts;
        fc.pre(size !== rowCount * model.layerCount * columns);
        const text = encode(Array.from({ length: size }, () => 0));
        expect(decodeRoutes(text, rowCount, { ...model, sharedExperts })).toMatch(/bytes, got/);
      }),
    );
  });

  it.each<[string, readonly number[], number, RegExp]>([
    ["a row too few (verl#6029 the other way round)", [1, 2, 0, 0], 2, /2 rows, .* have 32 bytes, got 16/],
    ["rows where none were asked for", [1, 2, 0, 0], 0, /have 0 bytes, got 16/],
    ["an expert that is not there", [1, 8, 0, 0], 1, /column 1 names expert 8, expected 0 to 7/],
    ["a filler of -1 (verl#7075)", [1, -1, 0, 0], 1, /names expert -1/],
    ["experts in a layer that has none", [1, 2, 0, 3], 1, /layer 1, which has no experts/],
  ])("are refused with %s", (_, ids, rowCount, reason) => {
    expect(decodeRoutes(encode(ids), rowCount, model)).toMatch(reason);
  });
});
