// What both kinds of image tell bwrap. Whatever can be written lies on file systems with a size limit; the toolkit
// comes last, over whatever an image has in its place.
import type { SandboxSpec } from "../sandbox.ts";
import type { Host } from "./host.ts";
import { TOOLKIT_MOUNT } from "./toolkit.ts";

/** Everything the spawner needs to start bwrap. */
export interface BwrapSetup {
  readonly options: readonly string[];
  /** Sources of the `--file` options, in their order. The sandbox's user must be able to read them. */
  readonly files: readonly string[];
  /** An image below an overlay, which is mounted at `root` below the mount point. */
  readonly overlay?: {
    /** The uppermost first. */
    readonly layers: readonly string[];
    readonly mountPoint: string;
    /** Folder with `upper` and `work`, on a disk; in memory when undefined. */
    readonly changes: string | undefined;
  };
  /** Room for everything that is written. */
  readonly sizeBytes: number;
  /** The network that commands may ask for. */
  readonly network: SandboxSpec["network"];
}

/** Behind the descriptors that bwrap has for its arguments, for what it tells and for its wait (spawner/). */
const FIRST_FILE_FD = 6;

/** Descriptor number that the `--file` option of a file has to name. */
export function fileDescriptor(index: number): string {
  return `${FIRST_FILE_FD + index}`;
}

/** As Docker's default for /dev/shm. */
const SHARED_MEMORY_BYTES = 64 << 20;

/** Options before the root is mounted. */
export const ISOLATION_OPTIONS: readonly string[] = [
  // Said by itself, because the next one only tries: for root it would go on without.
  "--unshare-user",
  "--unshare-all",
  "--as-pid-1",
  ...["--uid", "0", "--gid", "0"],
  ...["--hostname", "sandbox"],
  "--die-with-parent",
  "--clearenv",
  // More than any command has: a process may be traced, and its files under /proc read, only by one with as many
  // capabilities (ptrace(2), access mode checking). Else a debugger inside could end process 1 from within.
  ...["--cap-add", "ALL"],
];

/** Options after the root is mounted. */
export function systemOptions({ toolkit }: Host, { diskBytes }: SandboxSpec): readonly string[] {
  const sharedBytes = Math.min(SHARED_MEMORY_BYTES, diskBytes);
  return [
    ...["--proc", "/proc", "--dev", "/dev"],
    ...["--perms", "1777", "--size", `${sharedBytes}`, "--tmpfs", "/dev/shm"],
    ...["--remount-ro", "/dev"], // its own tmpfs has no size limit
    ...["--ro-bind", toolkit, TOOLKIT_MOUNT],
  ];
}
