import { claimContract } from "../../test/contracts/claim.ts";
import { temporaryStore } from "../../test/store/temporary-store.ts";

claimContract(temporaryStore);
