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

  it("lose the columns that a server appends for shared experts", () => {
    const model: RouteShape = { layerCount: 1, moeLayers: [0], expertsPerToken: 2, expertCount: 8 };
    const fused = Buffer.from(Int32Array.of(1, 2, 7, 3, 4, 7).buffer).toString("base64");
    expect(decodeRoutes(fused, 2, model)).toMatchObject({ rowCount: 2, ids: Uint8Array.of(1, 2, 3, 4) });
  });

  it.each<[string, readonly number[], number, RegExp]>([
    ["a row too few (verl#6029 the other way round)", [1, 2, 0, 0], 2, /no int32 array of 2 rows/],
    ["rows where none were asked for", [1, 2, 0, 0], 0, /no int32 array of 0 rows/],
    ["an expert that is not there", [1, 8, 0, 0], 1, /expert 8 of 8/],
    ["a filler of -1 (verl#7075)", [1, -1, 0, 0], 1, /expert -1 of 8/],
    ["experts in a layer that has none", [1, 2, 0, 3], 1, /layer 1, which has no experts/],
  ])("are refused with %s", (_, ids, rowCount, reason) => {
    const model: RouteShape = { layerCount: 2, moeLayers: [0], expertsPerToken: 2, expertCount: 8 };
    const text = Buffer.from(Int32Array.from(ids).buffer).toString("base64");
    expect(decodeRoutes(text, rowCount, model)).toMatch(reason);
  });
});
