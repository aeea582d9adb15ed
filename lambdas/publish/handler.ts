import { publish } from "../../src/stages/publish.ts";
import { stageHandler } from "../stage-handler.ts";

export const handler = stageHandler(publish);
