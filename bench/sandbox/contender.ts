// A contender is one way to get a sandbox for an agent's commands; the bench measures contenders side by side.

export interface Contender extends AsyncDisposable {
  readonly name: string;
  readonly kind: "bubblewrap" | "docker" | "none";
  /** Starts a sandbox that is ready for its first command. */
  create(): Promise<Box>;
}

export interface Box {
  /** Runs `true` and waits for its end. */
  command(): Promise<void>;
  /** Types a line and reads the screen, without waiting for its effect. Absent for contenders without a terminal. */
  readonly turn?: () => Promise<void>;
  stop(): Promise<void>;
}
