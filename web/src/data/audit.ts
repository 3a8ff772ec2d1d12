import { timestampFromDate, type Timestamp } from "@bufbuild/protobuf/wkt";

import { ExportFormat, type AuditList, type VerifyAuditResponse } from "../gen/console/v1/audit_pb";

import { useAction, useQuestion, type Action } from "./asking";
import type { Following } from "./console";
import { timeOf } from "../words/period";

/** AuditQuestion says which actions; empty fields say nothing. */
export interface AuditQuestion {
  user: string;
  object: string;
  verb: string;
  /** From when to when, as links say it: a span that ends now goes along with the time. */
  since: string;
  until: string;
}

const stampOf = (text: string): Timestamp | undefined => {
  const at = timeOf(text, new Date());
  return at === undefined ? undefined : timestampFromDate(at);
};

const filterOf = ({ since, until, ...filter }: AuditQuestion) => ({ ...filter, since: stampOf(since), until: stampOf(until) });

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
