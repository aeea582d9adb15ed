// The filters of system calls that the spawner gives to commands, as it makes them for each machine, run by an interpreter
// of the few instructions they have: this machine's kernel can only show what they do for its own architecture.
import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SPAWNER_PROGRAM } from "./spawner.ts";

// linux/audit.h
const ARCH = { x64: 0xc000003e, i386: 0x40000003, arm64: 0xc00000b7, arm: 0x40000028, riscv64: 0xc00000f3 };
/** Of system calls of x32, which come as those of x86-64 (asm/unistd.h, __X32_SYSCALL_BIT). */
const X32 = 0x40000000;
// linux/seccomp.h
const ALLOW = 0x7fff0000;
const FAIL = (errno: number): number => 0x00050000 | errno;
const ENOSYS = 38;

// add_key, request_key, keyctl: arch/x86/entry/syscalls/syscall_64.tbl and syscall_32.tbl, asm-generic/unistd.h,
// arch/arm/tools/syscall.tbl.
const KEYS: Readonly<Record<Machine, readonly (readonly [arch: number, calls: readonly number[]])[]>> = {
  x64: [
    [ARCH.x64, [248, 249, 250, X32 + 248, X32 + 249, X32 + 250]],
    [ARCH.i386, [286, 287, 288]],
  ],
  arm64: [
    [ARCH.arm64, [217, 218, 219]],
    [ARCH.arm, [309, 310, 311]],
  ],
};
// chown, fchown, lchown, fchownat; of arm64 there are two of them.
const OWNERS: typeof KEYS = {
  x64: [[ARCH.x64, [92, 93, 94, 260]]],
  arm64: [[ARCH.arm64, [55, 54]]],
};

type Machine = "x64" | "arm64";

/** @returns the instructions that a call of the spawner hands to the kernel, made on this machine for another */
function filterOf(machine: Machine, call: "refuse_keys" | "ignore_owners"): Buffer {
  const printing = `
    no warnings 'redefine';
    *sys = sub {
      my $program = $_[3];
      my $bytes = 8 * unpack 'S', $program;
      print unpack 'H*', (unpack "S x6 P$bytes", $program)[1];
      return 0;
    };
    ${call}();`;
  const hex = execFileSync("perl", ["-", "", machine], {
    input: `${SPAWNER_PROGRAM.replace(/^main\(\);\n$/m, "")}${printing}`,
    encoding: "utf8",
  });
  return Buffer.from(hex, "hex");
}

/** struct sock_filter of linux/filter.h: code, jump if true, jump if false, operand. */
function runFilter(filter: Buffer, { arch, number }: { arch: number; number: number }): number {
  const data = [number, arch]; // the start of struct seccomp_data
  let accumulator: number | undefined;
  for (let at = 0; at + 8 <= filter.length; at += 8) {
    const [code, ifTrue, ifFalse] = [filter.readUInt16LE(at), filter[at + 2] ?? 0, filter[at + 3] ?? 0];
    const operand = filter.readUInt32LE(at + 4);
    if (code === 0x20) accumulator = data[operand / 4];
    else if (code === 0x15) at += 8 * (accumulator === operand ? ifTrue : ifFalse);
    else if (code === 0x06) return operand;
    else throw new Error(`the interpreter does not know instruction ${code}`);
  }
  throw new Error("the filter has no end");
}

const CASES = [
  ["refuse_keys", KEYS, FAIL(ENOSYS)],
  ["ignore_owners", OWNERS, FAIL(0)],
] as const;

describe.each(["x64", "arm64"] as const)("on %s", machine => {
  test.each(CASES)(
    "%s answers its calls by every way into the kernel, and no others",
    (call, table, action) => {
      const filter = filterOf(machine, call);
      const expected = (arch: number, number: number): number =>
        table[machine].some(([own, calls]) => own === arch && calls.includes(number)) ? action : ALLOW;
      const arches = Object.values(ARCH);
      const named = [...KEYS.x64, ...KEYS.arm64, ...OWNERS.x64, ...OWNERS.arm64].flatMap(
        ([, calls]) => calls,
      );
      const near = [...new Set(named.flatMap(number => [number - 1, number, number + 1]))];
      const each = arches.flatMap(arch => near.map(number => ({ arch, number })));
      expect(each.map(asked => ({ ...asked, action: runFilter(filter, asked) }))).toEqual(
        each.map(asked => ({ ...asked, action: expected(asked.arch, asked.number) })),
      );
      const any = fc.integer({ min: 0, max: 2 ** 32 - 1 });
      fc.assert(
        fc.property(fc.oneof(fc.constantFrom(...arches), any), fc.oneof(any, fc.nat(600)), (arch, number) => {
          expect(runFilter(filter, { arch, number })).toBe(expected(arch, number));
        }),
      );
    },
  );
});
