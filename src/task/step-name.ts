// A step's name is also its folder below steps/, so it has to be a folder name on every operating system.
import { stripSpace } from "./strip-space.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: the name may not contain these
const FORBIDDEN = /[<>:"/\\|?*\x00-\x1f\x7f]/;
const DEVICE = /^(con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[1-9¹²³])$/i;
const MAX_NAME_BYTES = 255;

/** @returns what was expected instead, undefined for a good name */
export function stepNameFault(name: string): string | undefined {
  if (stripSpace(name) === "" || name === "." || name === "..") return "a folder name";
  if (/[. ]$/.test(name)) return "a name that ends in neither '.' nor ' '";
  if (FORBIDDEN.test(name)) return 'a name without control characters and without < > : " / \\ | ? *';
  const [stem = ""] = name.split(".");
  if (DEVICE.test(stem.replace(/ +$/, ""))) return "a name that is no Windows device";
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `at most ${MAX_NAME_BYTES} bytes of UTF-8`;
  return undefined;
}

/** Equal for names that are one folder on a file system that ignores case or Unicode composition. */
export function stepNameKey(name: string): string {
  return Array.from(name.normalize("NFC"), letter => letter.toUpperCase().toLowerCase()).join("");
}
