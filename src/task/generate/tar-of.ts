// Makes a tar archive (ustar) of one small text file. The same input gives the same bytes.
const BLOCK = 512;

export function tarOf(name: string, text: string): Uint8Array {
  const content = Buffer.from(text);
  const header = Buffer.alloc(BLOCK);
  header.write(name, 0);
  header.write("0000644\0", 100);
  header.write("0000000\0", 108);
  header.write("0000000\0", 116);
  header.write(`${content.length.toString(8).padStart(11, "0")}\0`, 124);
  header.write("00000000000\0", 136);
  header.write("        ", 148);
  header.write("0", 156);
  header.write("ustar\0", 257);
  header.write("00", 263);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  const padded = Buffer.alloc(Math.ceil(content.length / BLOCK) * BLOCK);
  content.copy(padded);
  return Buffer.concat([header, padded, Buffer.alloc(2 * BLOCK)]);
}
