// The first SIGINT or SIGTERM asks for an end in order, a second one ends the process at once.

export interface Interruption {
  readonly received: () => boolean;
  /** Signals do again what they did before. */
  readonly end: () => void;
}

/**
 * @param says what the person reads who interrupts, and what goes on then
 * @param onFirst called once, for what is to be ended at once
 */
export function interruptOnSignals(
  says: { readonly first: string; readonly goesOn: string },
  onFirst: () => void = () => {},
): Interruption {
  let received = false;
  const onSignal = (): void => {
    // A line of its own, also behind a line of progress.
    process.stderr.write(`\n${received ? `ended at once; ${says.goesOn}` : says.first}\n`);
    if (received) process.exit(130);
    received = true;
    onFirst();
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  return {
    received: () => received,
    end: () => process.off("SIGINT", onSignal).off("SIGTERM", onSignal),
  };
}
