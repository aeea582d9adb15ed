// A graph under construction: ONNX nodes in execution order, and the tape that `gradients` (backward.ts) walks.
// Operations (elementwise.ts, shaping.ts, reductions.ts, linear.ts, indexing.ts, network.ts) add nodes together with their
// gradient rule. `node` adds one without a rule, for values that need none.
import { InvariantError } from "../failure/errors.ts";

export type DType = "f32" | "i32" | "i64" | "bool";

/** A number, or the name of a size that is known only when the graph runs ("N", "R*T"). */
export type Dim = number | string;
export type Shape = readonly Dim[];

/** A value of the graph. `differentiable` says that it depends on a parameter through differentiable operations. */
export interface Tensor {
  readonly graph: Graph;
  readonly name: string;
  readonly dtype: DType;
  readonly shape: Shape;
  readonly differentiable: boolean;
}

export type Attribute = number | string | readonly number[] | { readonly float: number };

export interface Node {
  readonly op: string;
  /** Empty for the standard ONNX operators. */
  readonly domain: "" | "com.microsoft";
  /** undefined leaves out an optional input. */
  readonly inputs: readonly (Tensor | undefined)[];
  readonly outputs: readonly Tensor[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

export interface Constant {
  readonly tensor: Tensor;
  readonly bytes: Uint8Array;
}

/**
 * How the gradient of an operation's result becomes the gradients of its inputs, in their order. Each is made only
 * when it is needed, and may still have the shape that its input was stretched to (backward.ts sums it down).
 *
 * @param dy gradient of the first output that has one
 * @param all gradient of each output; undefined where nothing depends on it
 */
export type Pullback = (dy: Tensor, all: readonly (Tensor | undefined)[]) => readonly (() => Tensor)[];

/** One differentiable operation as the reverse pass sees it. */
export interface TapeEntry {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  readonly pullback: Pullback;
}

export interface NodeOptions {
  readonly shape: Shape;
  readonly dtype?: DType;
  readonly attributes?: Readonly<Record<string, Attribute>>;
  readonly domain?: "" | "com.microsoft";
}

type ConstantData = Float32Array | Int32Array | BigInt64Array;

export class Graph {
  readonly nodes: Node[] = [];
  readonly constants: Constant[] = [];
  readonly inputs: Tensor[] = [];
  readonly outputs: Tensor[] = [];
  readonly tape: TapeEntry[] = [];
  #valueCount = 0;
  #recording = true;
  readonly #scalars = new Map<string, Tensor>();
  /** Where the value of a named dimension can be read while the graph runs. */
  readonly #dimSources = new Map<string, { readonly tensor: Tensor; readonly axis: number }>();
  readonly #dimTensors = new Map<string, Tensor>();

  /** A value fed at each run. Its named dimensions can be used by every later shape. */
  input(name: string, shape: Shape, dtype: DType = "f32"): Tensor {
    const tensor = this.#declare(`in.${name}`, shape, dtype, false);
    this.inputs.push(tensor);
    this.bindDims(tensor);
    return tensor;
  }

  /** An input that gradients are taken with respect to. */
  parameter(name: string, shape: readonly number[]): Tensor {
    const tensor = this.#declare(`in.${name}`, shape, "f32", true);
    this.inputs.push(tensor);
    return tensor;
  }

  output(name: string, value: Tensor): void {
    const tensor = this.#declare(`out.${name}`, value.shape, value.dtype, false);
    this.nodes.push({ op: "Identity", domain: "", inputs: [value], outputs: [tensor], attributes: {} });
    this.outputs.push(tensor);
  }

  constant(data: ConstantData, shape: readonly number[]): Tensor {
    const dtype = data instanceof Float32Array ? "f32" : data instanceof Int32Array ? "i32" : "i64";
    const tensor = this.#declare(this.#nextName(), shape, dtype, false);
    this.constants.push({ tensor, bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) });
    return tensor;
  }

  /** A number of shape []; equal numbers share one constant. */
  scalar(value: number, dtype: "f32" | "i32" | "i64" = "f32"): Tensor {
    return this.#once(`${dtype} ${value}`, () => {
      if (dtype === "f32") return this.constant(Float32Array.of(value), []);
      return dtype === "i32"
        ? this.constant(Int32Array.of(value), [])
        : this.constant(BigInt64Array.of(BigInt(value)), []);
    });
  }

  /** A list of i64 numbers, as axes and shapes are given to ONNX operators. */
  integers(values: readonly number[]): Tensor {
    return this.#once(`list ${values.join()}`, () =>
      this.constant(
        BigInt64Array.from(values, value => BigInt(value)),
        [values.length],
      ),
    );
  }

  /** Adds one ONNX node with one output. It has no gradient rule, so none of its inputs may need one. */
  node(op: string, inputs: readonly (Tensor | undefined)[], options: NodeOptions): Tensor {
    return this.nodeOutputs(op, inputs, [options], options)[0];
  }

  /** Adds one ONNX node with several outputs. */
  nodeOutputs(
    op: string,
    inputs: readonly (Tensor | undefined)[],
    outputs: readonly { readonly shape: Shape; readonly dtype?: DType }[],
    { attributes = {}, domain = "" }: Pick<NodeOptions, "attributes" | "domain"> = {},
  ): Tensor[] {
    if (this.#recording) {
      const blocked = inputs.find(tensor => tensor?.differentiable);
      if (blocked !== undefined) {
        throw new InvariantError(
          `${op} has no gradient rule: use an operation of src/tensor that has one, or stopGradient on its input`,
          { input: blocked.name },
        );
      }
    }
    const tensors = outputs.map(({ shape, dtype = "f32" }) =>
      this.#declare(this.#nextName(), shape, dtype, false),
    );
    this.nodes.push({ op, domain, inputs, outputs: tensors, attributes });
    return tensors;
  }

  /**
   * Adds a differentiable operation: `emit` adds its nodes and returns its outputs with its gradient rule. The tape
   * holds it where an input depends on a parameter.
   */
  apply(
    inputs: readonly Tensor[],
    emit: () => { readonly outputs: readonly Tensor[]; readonly pullback: Pullback },
  ): Tensor[] {
    const recorded = this.#recording && inputs.some(tensor => tensor.differentiable);
    const { outputs, pullback } = this.withoutTape(emit);
    if (!recorded) return [...outputs];
    const marked = outputs.map(tensor => ({ ...tensor, differentiable: true }));
    this.tape.push({ inputs, outputs: marked, pullback });
    return marked;
  }

  /** As `apply`, for an operation with one output. */
  applyOne(
    inputs: readonly Tensor[],
    emit: () => readonly [Tensor, (dy: Tensor) => readonly (() => Tensor)[]],
  ): Tensor {
    return this.apply(inputs, () => {
      const [output, pullback] = emit();
      return { outputs: [output], pullback };
    })[0];
  }

  /** Nodes added by `emit` are not recorded: the inside of an operation, or the reverse pass itself. */
  withoutTape<T>(emit: () => T): T {
    const before = this.#recording;
    this.#recording = false;
    try {
      return emit();
    } finally {
      this.#recording = before;
    }
  }

  /** Makes the named dimensions of a tensor readable by later shapes. The first source of a name stays. */
  bindDims(tensor: Tensor): void {
    tensor.shape.forEach((dim, axis) => {
      if (typeof dim === "string" && !this.#dimSources.has(dim)) this.#dimSources.set(dim, { tensor, axis });
    });
  }

  /** The value of a dimension as an i64 tensor of shape [1]. */
  dim(dim: Dim): Tensor {
    if (typeof dim === "number") return this.integers([dim]);
    const known = this.#dimTensors.get(dim);
    if (known !== undefined) return known;
    const value = this.withoutTape(() => this.#readDim(dim));
    this.#dimTensors.set(dim, value);
    return value;
  }

  /** A shape as an i64 tensor, read while the graph runs where it has named dimensions. */
  shapeTensor(shape: Shape): Tensor {
    if (isStatic(shape)) return this.integers(shape);
    return this.withoutTape(() =>
      this.node(
        "Concat",
        shape.map(dim => this.dim(dim)),
        { shape: [shape.length], dtype: "i64", attributes: { axis: 0 } },
      ),
    );
  }

  #readDim(dim: string): Tensor {
    const source = this.#dimSources.get(dim);
    if (source !== undefined) {
      const attributes = { start: source.axis, end: source.axis + 1 };
      return this.node("Shape", [source.tensor], { shape: [1], dtype: "i64", attributes });
    }
    const factors = dim.split("*");
    if (factors.length === 1) throw new InvariantError("no tensor has this dimension", { dim });
    return factors
      .map(factor => this.dim(/^\d+$/.test(factor) ? Number(factor) : factor))
      .reduce((product, factor) => this.node("Mul", [product, factor], { shape: [1], dtype: "i64" }));
  }

  #once(key: string, make: () => Tensor): Tensor {
    const known = this.#scalars.get(key);
    if (known !== undefined) return known;
    const made = make();
    this.#scalars.set(key, made);
    return made;
  }

  #declare(name: string, shape: Shape, dtype: DType, differentiable: boolean): Tensor {
    return { graph: this, name, dtype, shape: [...shape], differentiable };
  }

  #nextName(): string {
    return `v${this.#valueCount++}`;
  }
}

function isStatic(shape: Shape): shape is readonly number[] {
  return shape.every(dim => typeof dim === "number");
}

export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((dim, axis) => dim === b[axis]);
}

/** Product of dimensions: a number when all are known, else a name such as "R*T*4" (numbers last, multiplied). */
export function productDim(shape: Shape): Dim {
  const names = shape.filter(dim => typeof dim === "string");
  const known = shape.filter(dim => typeof dim === "number").reduce((product, dim) => product * dim, 1);
  if (names.length === 0) return known;
  return known === 1 ? names.join("*") : [...names, known].join("*");
}

/** Shape of an element-wise result: aligned at the last axis, sizes of 1 stretch. */
export function broadcastShapes(a: Shape, b: Shape): Dim[] {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, axis) => {
    const left = a[a.length - rank + axis] ?? 1;
    const right = b[b.length - rank + axis] ?? 1;
    if (left === right || right === 1) return left;
    if (left === 1) return right;
    throw new InvariantError("shapes do not broadcast", { a, b });
  });
}
