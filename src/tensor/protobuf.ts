// Append-only writer of protobuf wire format (https://protobuf.dev/programming-guides/encoding/), as much of it as an
// ONNX model needs. Nested messages are written apart and length-prefixed.

const VARINT = 0;
const LENGTH_DELIMITED = 2;
const FIXED32 = 5;

export class ProtobufWriter {
  #bytes = new Uint8Array(1024);
  #length = 0;

  integer(field: number, value: number | bigint): this {
    this.#varint((field << 3) | VARINT);
    this.#varint(value);
    return this;
  }

  float(field: number, value: number): this {
    this.#varint((field << 3) | FIXED32);
    this.#reserve(4);
    new DataView(this.#bytes.buffer).setFloat32(this.#length, value, true);
    this.#length += 4;
    return this;
  }

  bytes(field: number, value: Uint8Array): this {
    this.#varint((field << 3) | LENGTH_DELIMITED);
    this.#varint(value.length);
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    return this;
  }

  string(field: number, value: string): this {
    return this.bytes(field, Buffer.from(value, "utf8"));
  }

  message(field: number, write: (nested: ProtobufWriter) => void): this {
    const nested = new ProtobufWriter();
    write(nested);
    return this.bytes(field, nested.finish());
  }

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Negative numbers take ten bytes, as two's complement of 64 bits. */
  #varint(value: number | bigint): void {
    this.#reserve(10);
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest > 127n) {
      this.#bytes[this.#length++] = Number(rest & 127n) | 128;
      rest >>= 7n;
    }
    this.#bytes[this.#length++] = Number(rest);
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + count));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }
}
