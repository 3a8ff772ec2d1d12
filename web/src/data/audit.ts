import { timestampFromDate } from "@bufbuild/protobuf/wkt";

import { ExportFormat, type AuditList, type VerifyAuditResponse } from "../gen/console/v1/audit_pb";

import { useAction, useQuestion, type Action } from "./asking";
import type { Following } from "./console";

/** AuditQuestion says which actions; empty fields say nothing. */
export interface AuditQuestion {
  user: string;
  object: string;
  verb: string;
  since: Date | undefined;
}

const filterOf = ({ user, object, verb, since }: AuditQuestion) => ({ user, object, verb, since: since === undefined ? undefined : timestampFromDate(since) });

export function useAudit(question: AuditQuestion, before: bigint): Following<AuditList> {
  return useQuestion({
    key: ["audit", question, before.toString()],
    keepPrevious: true,
    refetchMilliseconds: 5_000,
    ask: (client, signal) => client.listAudit({ filter: filterOf(question), before, limit: 200 }, { signal }),
  });
}

/** useAuditExport collects every action that matches into one file. */
export function useAuditExport(): Action<{ question: AuditQuestion; comma: boolean }, Blob> {
  return useAction(async (client, { question, comma }) => {
    const chunks: BlobPart[] = [];
    const format = comma ? ExportFormat.CSV : ExportFormat.JSON_LINES;
    for await (const { chunk } of client.exportAudit({ filter: filterOf(question), format })) chunks.push(new Uint8Array(chunk));
    return new Blob(chunks, { type: comma ? "text/csv" : "application/jsonl" });
  });
}

export function useAuditVerification(): Action<{ sequence: bigint; hash: string }, VerifyAuditResponse> {
  return useAction((client, request) => client.verifyAudit(request));
}
