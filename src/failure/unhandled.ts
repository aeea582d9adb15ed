// A promise that fails before anybody waits for it ends a Node process at once, and with it every other episode that the
// process plays. Programs that do many things at a time record such an error instead and go on: whoever waits for the
// promise later still gets the error, and what nobody waits for concerns nobody else's work.
import { reportError } from "./report-error.ts";

/** Records instead of ending the process, until `end` is called. @param write told each error as a person would be */
export function recordUnhandled(write: (text: string) => void): { readonly end: () => void } {
  const record = (reason: unknown): void => {
    reportError(reason, text =>
      write(`an operation failed while nobody waited for it; the process goes on\n${text}`),
    );
  };
  process.on("unhandledRejection", record);
  return { end: () => void process.off("unhandledRejection", record) };
}
