import { recordStop } from "../../src/stages/record-stop.ts";
import { stageHandler } from "../stage-handler.ts";

export const handler = stageHandler(recordStop);
