// The option that chooses what sandboxes are made by.
import { Option } from "commander";
import { SANDBOX_KINDS } from "../sandbox/open-sandboxes.ts";

export function sandboxesOption(): Option {
  return new Option(
    "--sandboxes <kind>",
    "what sandboxes are made by: bubblewrap, or the containers of docker or podman (DOCKER_HOST or CONTAINER_HOST name its socket)",
  )
    .choices(SANDBOX_KINDS)
    .default("bubblewrap")
    .env("T1_SANDBOXES");
}
