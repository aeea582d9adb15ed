import { prepare } from "../../src/stages/prepare.ts";
import { prepareOnFargate } from "../../src/stages/prepare-on-fargate.ts";
import { stageHandler } from "../stage-handler.ts";
import { imageCloud } from "./image-cloud.ts";

export const handler = stageHandler(prepare, settings => ({
  makeReady: settings.sandboxes === "fargate" ? prepareOnFargate(imageCloud(settings)) : async () => 0,
}));
