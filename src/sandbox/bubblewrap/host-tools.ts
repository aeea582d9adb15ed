// Programs of this machine that build and enter sandboxes, by absolute path.
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { InputError } from "../../failure/errors.ts";

/** Tool, and the Debian package that brings it. */
const PACKAGE_OF = {
  bwrap: "bubblewrap",
  perl: "perl-base",
  tar: "tar",
} as const;
type ToolName = keyof typeof PACKAGE_OF;
export type HostTools = Readonly<Record<ToolName, string>>;

/** Where they are looked for; a user's PATH often lacks the folders of administrators. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** @throws InputError naming every missing tool and its package */
export function findHostTools(path = process.env.PATH ?? ""): HostTools {
  const folders = [...path.split(":").filter(folder => folder.startsWith("/")), ...SYSTEM_FOLDERS];
  const found: Partial<Record<ToolName, string>> = {};
  for (const name of Object.keys(PACKAGE_OF) as ToolName[]) {
    const file = folders.map(folder => join(folder, name)).find(isExecutable);
    if (file !== undefined) found[name] = file;
  }
  if (isComplete(found)) return found;
  const missing = (Object.keys(PACKAGE_OF) as ToolName[]).filter(name => found[name] === undefined);
  const packages = [...new Set(missing.map(name => PACKAGE_OF[name]))];
  throw new InputError({
    what: `sandboxes need programs that are missing here: ${missing.join(", ")}`,
    where: `PATH and ${SYSTEM_FOLDERS.join(", ")}`,
    fix: `install them, on Debian and Ubuntu by: apt-get install ${packages.join(" ")}`,
  });
}

function isComplete(found: Partial<HostTools>): found is HostTools {
  return (Object.keys(PACKAGE_OF) as ToolName[]).every(name => found[name] !== undefined);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
