// What is measured side by side: ways to have a place in which commands of an agent run.

export interface Contender extends AsyncDisposable {
  readonly name: string;
  readonly kind: "bubblewrap" | "docker" | "none";
  /** A place that is ready for its first command. */
  create(): Promise<Box>;
}

export interface Box {
  /** Runs `true` and waits for its end. */
  command(): Promise<void>;
  /** Types a line and reads the screen, without a wait for what it does. Absent where there is no terminal. */
  readonly turn?: () => Promise<void>;
  stop(): Promise<void>;
}
