// The gradient rule of every operation against central finite differences. An exported function of the modules below
// needs a row, or a place among those without a gradient; otherwise the types and the first test fail.
import { describe, expect, it } from "vitest";
import { deriveSeed } from "../random/seed.ts";
import { RandomStream } from "../random/stream.ts";
import { gradients } from "./backward.ts";
import * as elementwise from "./elementwise.ts";
import { Graph, type Tensor } from "./graph.ts";
import * as indexing from "./indexing.ts";
import * as linear from "./linear.ts";
import * as network from "./network.ts";
import * as reductions from "./reductions.ts";
import { type Feeds, Session } from "./session.ts";
import * as shaping from "./shaping.ts";

const OPERATIONS = { ...elementwise, ...indexing, ...linear, ...network, ...reductions, ...shaping };
const WITHOUT_GRADIENT = [
  "cast",
  "compare",
  "expand",
  "gatherRows",
  "reduceMean",
  "stopGradient",
  "zeros",
] as const;

interface Row {
  /** Shape of each parameter. */
  readonly shapes: readonly (readonly number[])[];
  readonly apply: (inputs: Tensor[], graph: Graph) => Tensor;
}

type Operation = Exclude<keyof typeof OPERATIONS, (typeof WITHOUT_GRADIENT)[number]>;

const { add, clip, combine, concat, dispatch, embed, exp, logSoftmax, matmul, max } = OPERATIONS;
const { mul, neg, permuteRows, pickLast, reduceSum, reshape, rmsNorm, rope, softmax } = OPERATIONS;
const { split, sub, swiglu, takeRows, transpose, where } = OPERATIONS;

const ROWS: { readonly [O in Operation]: readonly Row[] } = {
  add: stretched(add),
  sub: stretched(sub),
  mul: stretched(mul),
  max: stretched(max),
  clip: [{ shapes: [[3, 4]], apply: ([x]) => clip(x, -0.52, 0.44) }],
  neg: [{ shapes: [[2, 3]], apply: ([x]) => neg(x) }],
  exp: [{ shapes: [[2, 3]], apply: ([x]) => exp(x) }],
  where: [
    {
      shapes: [[2, 3], [3]],
      apply: ([a, b], graph) =>
        where(elementwise.compare("Equal", i32(graph, [0, 1, 1]), graph.scalar(1, "i32")), a, b),
    },
  ],
  reduceSum: [
    { shapes: [[2, 3, 2]], apply: ([x]) => reduceSum(x, [-1]) },
    { shapes: [[2, 3, 2]], apply: ([x]) => reduceSum(x, [0, 2]) },
  ],
  softmax: [{ shapes: [[3, 4]], apply: ([x]) => softmax(x) }],
  logSoftmax: [{ shapes: [[3, 4]], apply: ([x]) => logSoftmax(x) }],
  reshape: [{ shapes: [[2, 6]], apply: ([x]) => reshape(x, [3, 4]) }],
  transpose: [{ shapes: [[2, 3, 2]], apply: ([x]) => transpose(x, [2, 0, 1]) }],
  concat: [
    {
      shapes: [
        [2, 3],
        [2, 1],
        [2, 2],
      ],
      apply: parts => concat(parts, 1),
    },
  ],
  split: [
    // The piece in the middle is not used: its gradient is zero.
    {
      shapes: [[2, 6]],
      apply: ([x]) => {
        const [a, , c] = split(x, 1, [1, 3, 2]);
        return mul(a, c);
      },
    },
  ],
  matmul: [
    ...[false, true].flatMap(transposeA =>
      [false, true].map(transposeB => ({
        shapes: [transposeA ? [3, 2] : [2, 3], transposeB ? [4, 3] : [3, 4]],
        apply: ([a, b]: Tensor[]) => matmul(a, b, { transposeA, transposeB, alpha: 0.7 }),
      })),
    ),
    {
      shapes: [
        [2, 2, 3],
        [4, 3],
      ],
      apply: ([a, b]) => matmul(a, b, { transposeB: true }),
    },
    {
      shapes: [
        [2, 2, 3],
        [2, 3, 2],
      ],
      apply: ([a, b]) => matmul(a, b),
    },
    {
      shapes: [
        [1, 2, 3],
        [2, 3, 2],
      ],
      apply: ([a, b]) => matmul(a, b),
    },
  ],
  embed: [{ shapes: [[4, 3]], apply: ([table], graph) => embed(table, i32(graph, [2, 0, 2, 2])) }],
  takeRows: [
    { shapes: [[4, 2]], apply: ([x], graph) => takeRows(x, i32(graph, [3, 1]), i32(graph, [2, 1, 2, 0])) },
  ],
  permuteRows: [
    { shapes: [[3, 2]], apply: ([x], graph) => permuteRows(x, i32(graph, [2, 0, 1]), i32(graph, [1, 2, 0])) },
  ],
  // Three tokens with two experts each; their copies lie in the order of the experts.
  dispatch: [{ shapes: [[3, 2]], apply: ([x], graph) => dispatch(x, ...routing(graph)) }],
  combine: [{ shapes: [[6, 2]], apply: ([y], graph) => combine(y, ...routing(graph)) }],
  pickLast: [{ shapes: [[2, 4]], apply: ([x], graph) => pickLast(x, i32(graph, [3, 0, 1, 2], [2, 2])) }],
  swiglu: [
    {
      shapes: [
        [2, 3],
        [2, 3],
      ],
      apply: ([gate, up]) => swiglu(gate, up),
    },
  ],
  rmsNorm: [{ shapes: [[3, 4], [4]], apply: ([x, weight]) => rmsNorm(x, weight, 1e-6) }],
  rope: [
    {
      shapes: [[1, 2, 3, 4]],
      apply: ([x], graph) => {
        const angles = Float32Array.from({ length: 6 }, (_, at) => 0.3 + 0.5 * at);
        const table = (f: (angle: number) => number) => graph.constant(angles.map(f), [3, 2]);
        const positions = graph.constant(BigInt64Array.of(2n, 0n, 1n), [1, 3]);
        return rope(x, positions, {
          cos: table(Math.cos),
          sin: table(Math.sin),
          negativeSin: table(angle => -Math.sin(angle)),
        });
      },
    },
  ],
};

describe("gradient rules", () => {
  it("all have a row in the table", () => {
    expect(Object.keys(ROWS).toSorted()).toEqual(
      Object.keys(OPERATIONS)
        .filter(name => !WITHOUT_GRADIENT.includes(name as never))
        .toSorted(),
    );
  });

  const cases = Object.entries(ROWS).flatMap(([name, rows]) => rows.map((row, at) => ({ name, at, row })));
  it.each(cases)("of $name ($at) agrees with finite differences", async ({ name, row }) => {
    const { analytic, numeric } = await bothGradients(row, name);
    for (const [parameter, expected] of numeric.entries()) {
      expect(
        expected.some(value => Math.abs(value) > 0.01),
        `parameter ${parameter} matters`,
      ).toBe(true);
      for (const [element, value] of expected.entries())
        expect(analytic[parameter][element], `parameter ${parameter}, element ${element}`).toBeCloseTo(
          value,
          2.3,
        );
    }
  });

  it.each([
    ["max", max],
    ["min", (a: Tensor) => clip(a, -9, 0.5)],
  ] as const)("of %s gives the whole gradient to the first where both are equal", async (_, operation) => {
    const graph = new Graph();
    const x = graph.parameter("x", [1]);
    const loss = operation(x, graph.scalar(0.5));
    graph.output("dx", gradients(loss, [x])[0]);
    await using session = await Session.open(graph, { threads: 1 });
    const results = await session.run({ x: { data: Float32Array.of(0.5), shape: [1] } });
    expect([...results.f32("dx").data]).toEqual([1]);
  });

  it("add up where a parameter is used twice, and are zero where the loss does not depend on it", async () => {
    const graph = new Graph();
    const [x, unused] = [graph.parameter("x", [2]), graph.parameter("unused", [3])];
    const loss = reduceSum(add(mul(x, x), x), [0]);
    for (const [at, gradient] of gradients(loss, [x, unused]).entries()) graph.output(`d${at}`, gradient);
    await using session = await Session.open(graph, { threads: 1 });
    const results = await session.run({
      x: { data: Float32Array.of(3, -1), shape: [2] },
      unused: { data: new Float32Array(3), shape: [3] },
    });
    expect([...results.f32("d0").data]).toEqual([7, -1]);
    expect([...results.f32("d1").data]).toEqual([0, 0, 0]);
  });

  it("are not needed by accident: an operation without one refuses what depends on a parameter", () => {
    const graph = new Graph();
    expect(() => shaping.expand(graph.parameter("x", [1, 2]), [3, 2])).toThrow(/no gradient rule/);
  });
});

/** A binary operation on equal shapes, and with either side stretched. */
function stretched(operation: (a: Tensor, b: Tensor) => Tensor): Row[] {
  const apply = ([a, b]: Tensor[]) => operation(a, b);
  return [
    {
      shapes: [
        [2, 3],
        [2, 3],
      ],
      apply,
    },
    { shapes: [[2, 1], [3]], apply },
    { shapes: [[], [2, 2]], apply },
  ];
}

function i32(graph: Graph, values: readonly number[], shape: readonly number[] = [values.length]): Tensor {
  return graph.constant(Int32Array.from(values), shape);
}

function routing(graph: Graph): [source: Tensor, position: Tensor] {
  const source = [1, 0, 2, 1, 0, 2];
  return [i32(graph, source), i32(graph, [1, 4, 0, 3, 2, 5], [3, 2])];
}

/** Gradients of Σ weight·operation(parameters), with weights and parameters drawn once for each name. */
async function bothGradients({ shapes, apply }: Row, name: string) {
  const stream = new RandomStream(deriveSeed("gradients", name));
  const sizes = shapes.map(shape => shape.reduce((product, dim) => product * dim, 1));
  // Values lie apart, so that no step crosses a place where a maximum changes sides.
  const count = sizes.reduce((sum, size) => sum + size, 0);
  const values = stream.shuffle(Array.from({ length: count }, (_, at) => -1 + (2 * (at + 0.5)) / count));
  const drawn = sizes.map(size => Float32Array.from(values.splice(0, size)));

  const graph = new Graph();
  const parameters = shapes.map((shape, at) => graph.parameter(`p${at}`, shape));
  const result = apply(parameters, graph);
  expect(graph.tape.length, "the operation is on the tape").toBeGreaterThan(0);
  const outputSize = result.shape.reduce<number>((product, dim) => product * Number(dim), 1);
  const weights = Float32Array.from({ length: outputSize }, () => 0.5 + stream.uniform());
  const weighted = mul(result, graph.constant(weights, result.shape.map(Number)));
  const loss = reduceSum(reshape(weighted, [outputSize]), [0]);
  graph.output("loss", loss);
  for (const [at, gradient] of gradients(loss, parameters).entries()) graph.output(`d${at}`, gradient);

  await using session = await Session.open(graph, { threads: 1 });
  const run = (arrays: readonly Float32Array[]) =>
    session.run(
      Object.fromEntries(arrays.map((data, at) => [`p${at}`, { data, shape: shapes[at] }])) satisfies Feeds,
    );
  const results = await run(drawn);
  const analytic = drawn.map((_, at) => results.f32(`d${at}`).data);

  const STEP = 1e-2;
  const lossAt = async (parameter: number, element: number, change: number) => {
    const moved = drawn.map((array, at) => (at === parameter ? array.slice() : array));
    moved[parameter][element] += change;
    return (await run(moved)).f32("loss").data[0];
  };
  const numeric: number[][] = [];
  for (const [parameter, array] of drawn.entries()) {
    const slopes: number[] = [];
    for (const element of array.keys())
      slopes.push(
        ((await lossAt(parameter, element, STEP)) - (await lossAt(parameter, element, -STEP))) / (2 * STEP),
      );
    numeric.push(slopes);
  }
  return { analytic, numeric };
}
