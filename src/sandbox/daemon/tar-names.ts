// Names in an archive between daemons. What is no UTF-8 goes along in records of our own, since pax has text only; whoever
// does not know them reads U+FFFD.
import type { Header } from "tar-stream";
import { z } from "zod";

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

export function namesOf({ name, linkname, pax }: Header): {
  readonly name: string;
  readonly linkname: string;
} {
  const { "T1.name": exact, "T1.linkname": exactTarget } = Records.parse(pax ?? {});
  return {
    name: exact === undefined ? name : z.string().parse(JSON.parse(exact)),
    linkname: exactTarget === undefined ? (linkname ?? "") : z.string().parse(JSON.parse(exactTarget)),
  };
}
