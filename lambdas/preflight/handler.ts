import { preflight } from "../../src/stages/preflight.ts";
import { stageHandler } from "../stage-handler.ts";
import { account } from "./account.ts";

export const handler = stageHandler(preflight, ({ sandboxes }) =>
  sandboxes === "fargate" ? { account } : {},
);
