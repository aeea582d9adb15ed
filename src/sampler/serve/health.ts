/**
 * Whether a server answers at all: what it answers does not matter. That it has no weights yet is no reason to replace it,
 * the first driver brings them.
 */
export async function answersHealth(url: string, timeoutMs: number): Promise<boolean> {
  try {
    const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(timeoutMs) });
    await response.arrayBuffer();
    return true;
  } catch {
    return false;
  }
}
