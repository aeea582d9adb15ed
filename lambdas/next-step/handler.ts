import { nextStep } from "../../src/stages/next-step.ts";
import { stageHandler } from "../stage-handler.ts";

export const handler = stageHandler(nextStep);
