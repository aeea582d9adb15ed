// The first SIGINT or SIGTERM asks for an end in order, a second one ends the process at once.

export interface Interruption {
  readonly received: () => boolean;
  /** Signals do again what they did before. */
  readonly end: () => void;
}

/**
 * @param says what the person reads who interrupts
 * @param onFirst called once, for what is to be ended at once
 */
export function interruptOnSignals(says: string, onFirst: () => void = () => {}): Interruption {
  let received = false;
  const onSignal = (): void => {
    if (received) process.exit(130);
    received = true;
    process.stderr.write(`\n${says}\n`);
    onFirst();
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  return {
    received: () => received,
    end: () => process.off("SIGINT", onSignal).off("SIGTERM", onSignal),
  };
}
