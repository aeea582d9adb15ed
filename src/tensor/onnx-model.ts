// Encodes a graph as an ONNX model (onnx.proto3, field numbers from https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
import type { Attribute, Constant, DType, Graph, Node, Tensor } from "./graph.ts";
import { ProtobufWriter } from "./protobuf.ts";

const ELEMENT_TYPE: Record<DType, number> = { f32: 1, i32: 6, i64: 7, bool: 9 };
/** IR version 10 and operator set 21: the newest pair whose operators all have kernels in onnxruntime 1.30. */
const IR_VERSION = 10;
const OPSET = 21;

export function encodeModel(graph: Graph): Uint8Array {
  const model = new ProtobufWriter();
  model.integer(1, IR_VERSION).string(2, "t1");
  model.message(7, body => {
    for (const [index, node] of graph.nodes.entries())
      body.message(1, writer => writeNode(writer, node, index));
    body.string(2, "graph");
    for (const constant of graph.constants) body.message(5, writer => writeConstant(writer, constant));
    for (const input of graph.inputs) body.message(11, writer => writeValueInfo(writer, input));
    for (const output of graph.outputs) body.message(12, writer => writeValueInfo(writer, output));
  });
  model.message(8, opset => opset.string(1, "").integer(2, OPSET));
  model.message(8, opset => opset.string(1, "com.microsoft").integer(2, 1));
  return model.finish();
}

function writeNode(writer: ProtobufWriter, node: Node, index: number): void {
  for (const input of node.inputs) writer.string(1, input?.name ?? "");
  for (const output of node.outputs) writer.string(2, output.name);
  writer.string(3, `n${index}`).string(4, node.op);
  for (const [name, value] of Object.entries(node.attributes)) {
    writer.message(5, attribute => writeAttribute(attribute, name, value));
  }
  if (node.domain !== "") writer.string(7, node.domain);
}

function writeAttribute(writer: ProtobufWriter, name: string, value: Attribute): void {
  writer.string(1, name);
  if (typeof value === "number") writer.integer(3, value).integer(20, 2);
  else if (typeof value === "string") writer.string(4, value).integer(20, 3);
  else if ("float" in value) writer.float(2, value.float).integer(20, 1);
  else {
    for (const element of value) writer.integer(8, element);
    writer.integer(20, 7);
  }
}

function writeConstant(writer: ProtobufWriter, { tensor, bytes }: Constant): void {
  for (const dim of tensor.shape) writer.integer(1, Number(dim));
  writer.integer(2, ELEMENT_TYPE[tensor.dtype]).string(8, tensor.name).bytes(9, bytes);
}

function writeValueInfo(writer: ProtobufWriter, tensor: Tensor): void {
  writer.string(1, tensor.name).message(2, type =>
    type.message(1, tensorType => {
      tensorType.integer(1, ELEMENT_TYPE[tensor.dtype]).message(2, shape => {
        for (const dim of tensor.shape) {
          shape.message(1, writeDim =>
            typeof dim === "number" ? writeDim.integer(1, dim) : writeDim.string(2, dim),
          );
        }
      });
    }),
  );
}
