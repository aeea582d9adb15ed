// The rules of a lock that is a link: the target names the holder, and making a link fails when it is there. Apart from
// files and processes, so that a test can try every order of steps and every death between them.
//
// A lock of a dead holder must be removed, and of those who notice only one may do so: the others could remove the lock
// that a third one took in between. So who wants to remove the lock of holder n first becomes its heir by making the
// link `<lock>.heir-<n>`, which only one can; if that one dies too, its own heir goes on. The heir removes the lock only
// if it still is n's: holders never repeat, and only an heir removes n's lock, so the one that sees it there is the only
// one that acts. The heir links go after the lock.

/** Each step happens at once for everybody. */
export interface Links {
  /** @returns false when something is there already */
  create(path: string, target: string): Promise<boolean>;
  /** @returns undefined when nothing is there */
  read(path: string): Promise<string | undefined>;
  /** Removing what is not there is no error. */
  remove(path: string): Promise<void>;
  /** Whether a holder has died; once it has, it never acts again. */
  isDead(holder: string): boolean;
}

/**
 * Takes the lock if it is free or its holder is dead.
 *
 * @param holder never used before; what follows its last comma is unique
 */
export async function tryTakeLink(links: Links, path: string, holder: string): Promise<boolean> {
  if (await links.create(path, holder)) return true;
  const held = await links.read(path);
  if (held === undefined || !links.isDead(held)) return false;
  await removeOfDead(links, path, held, holder);
  return links.create(path, holder);
}

/** Frees the lock, unless a person removed it by hand and somebody else holds it now. */
export async function releaseLink(links: Links, path: string, holder: string): Promise<void> {
  if ((await links.read(path)) === holder) await links.remove(path);
}

async function removeOfDead(links: Links, path: string, dead: string, holder: string): Promise<void> {
  const heirs: string[] = [];
  for (let last = dead; ; ) {
    const heir = `${path}.heir-${last.slice(last.lastIndexOf(",") + 1)}`;
    heirs.push(heir);
    if (await links.create(heir, holder)) break;
    const other = await links.read(heir);
    if (other === undefined || !links.isDead(other)) return; // somebody else removes it, or has
    last = other;
  }
  const isStillThere = (await links.read(path)) === dead;
  if (isStillThere) await links.remove(path);
  // When it was not there any more, the links before ours belong to those who are still at it.
  for (const heir of isStillThere ? heirs : heirs.slice(-1)) await links.remove(heir);
}
