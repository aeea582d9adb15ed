// Refusals of the sandbox, in words for whoever asked.

export class Refusal extends Error {}

export function reasonOf(error: unknown): string {
  return error instanceof Error && "code" in error ? `${error.code}` : `${error}`;
}

/** Runs an action, or returns the reason why it was refused. */
export function refusable(action: () => void): { refused?: string } {
  try {
    action();
    return {};
  } catch (error) {
    return refusalOf(error);
  }
}

/** @throws an error that is none of the sandbox's */
export function refusalOf(error: unknown): { refused: string } {
  if (error instanceof Refusal) return { refused: error.message };
  if (error instanceof Error && "code" in error) return { refused: error.message };
  throw error;
}
