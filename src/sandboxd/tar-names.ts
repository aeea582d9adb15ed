// Names in an archive between daemons. What is no UTF-8 goes along in records of our own, since pax has text only; whoever
// does not know them reads U+FFFD.
import type { Header } from "tar-stream";
import { z } from "zod";
import { Refusal } from "./refusal.ts";

/** Names as JSON, which keeps lone surrogates. */
const Records = z.object({ "T1.name": z.string().optional(), "T1.linkname": z.string().optional() });

interface Named {
  readonly name: string;
  readonly linkname?: string | undefined;
}

export function namedHeader<Given extends Named>(header: Given): Given {
  const { name, linkname } = header;
  if (name.isWellFormed() && linkname?.isWellFormed() !== false) return header;
  const pax: z.infer<typeof Records> = { "T1.name": JSON.stringify(name) };
  if (linkname === undefined) return { ...header, name: name.toWellFormed(), pax };
  pax["T1.linkname"] = JSON.stringify(linkname);
  return { ...header, name: name.toWellFormed(), linkname: linkname.toWellFormed(), pax };
}

/** @throws Refusal for records that ours never makes: whoever packed the archive may be the agent */
export function namesOf({ name, linkname, pax }: Header): {
  readonly name: string;
  readonly linkname: string;
} {
  const { "T1.name": exact, "T1.linkname": exactTarget } = Records.parse(pax ?? {});
  return {
    name: exact === undefined ? name : exactName(exact),
    linkname: exactTarget === undefined ? (linkname ?? "") : exactName(exactTarget),
  };
}

function exactName(record: string): string {
  try {
    return z.string().parse(JSON.parse(record));
  } catch {
    throw new Refusal("the archive holds a name that is none");
  }
}
