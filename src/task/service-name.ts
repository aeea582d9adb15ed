// Names of Docker Compose services, in artifacts and in the verifier's collect hooks.
import { z } from "zod";
import { stripSpace } from "./strip-space.ts";

/** The service in which the agent works. */
export const MAIN_SERVICE = "main";

export const ServiceName = z
  .string()
  .transform(stripSpace)
  .pipe(
    z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/, {
      error: "a service name of letters, digits, '.', '_' and '-' that begins with a letter or digit",
    }),
  );
