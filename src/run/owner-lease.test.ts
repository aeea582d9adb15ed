import { ownerLeaseContract } from "../../test/contracts/owner-lease.ts";
import { temporaryStore } from "../../test/store/temporary-store.ts";

ownerLeaseContract(temporaryStore);
