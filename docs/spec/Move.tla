--------------------------------- MODULE Move ---------------------------------
(* A catalog moves to another engine while gateways work with it (rules 41 and 42). Requests to the engines may take effect late;
   the mover may stop at any step, goes on from what the engines have, and may give the move up.                              *)
EXTENDS Naturals, FiniteSets, TLC
CONSTANTS
  Procs,                   \* gateways
  Writes, Moves, Aborts, Lost,  \* budgets; Lost: requests whose answer is lost, and which may take effect at any time
  Without
On(rule) == rule \notin Without

Engines == {"src", "dst"}
\* What stands in the schema record. Each time it is set aside the mark is another one.
Live == <<"live", 0>>
None == <<"none", 0>>

VARIABLES
  schema,   \* engine -> its schema record
  present,  \* engine -> gateways whose start is the present one there
  log,      \* engine -> writes that took effect
  proc,     \* gateway -> [at, where]
  mover, mark, late, acked, budget
vars == <<schema, present, log, proc, mover, mark, late, acked, budget>>

Idle == [at |-> "idle", mark |-> None, src |-> None, seen |-> {}, log |-> {}]
Init ==
  /\ schema = [e \in Engines |-> IF e = "src" THEN Live ELSE None]
  /\ present = [e \in Engines |-> {}] /\ log = [e \in Engines |-> {}]
  /\ proc = [p \in Procs |-> [at |-> "off", where |-> "src"]]
  /\ mover = Idle /\ mark = 1 /\ late = {} /\ acked = {}
  /\ budget = [write |-> Writes, move |-> Moves, abort |-> Aborts, lost |-> Lost]

\* A request to give an engine another schema record, if it has the one that was read.
Takes(r) == schema[r.where] = r.was
Answered(r) == /\ Takes(r) /\ schema' = [schema EXCEPT ![r.where] = r.now] /\ late' = late /\ budget' = budget
Lose(r, spent) == /\ budget.lost > 0 /\ late' = late \cup {r} /\ schema' = schema /\ budget' = [spent EXCEPT !.lost = @ - 1]
Deliver(r) ==
  /\ r \in late /\ Takes(r) /\ schema' = [schema EXCEPT ![r.where] = r.now]
  /\ UNCHANGED <<present, log, proc, mover, mark, late, acked, budget>>
Next1(reason) == <<reason, IF On("nonce") THEN mark ELSE 1>>

(* ------------------------------------------------------------------ gateways *)
Look(p, e) ==
  /\ proc[p].at = "off" /\ schema[e] = Live /\ proc' = [proc EXCEPT ![p] = [at |-> "looked", where |-> e]]
  /\ UNCHANGED <<schema, present, log, mover, mark, late, acked, budget>>
\* The start is registered if the schema record is still as it was read.
Begin(p) ==
  /\ proc[p].at = "looked"
  /\ IF On("begin") => schema[proc[p].where] = Live
     THEN /\ present' = [present EXCEPT ![proc[p].where] = @ \cup {p}] /\ proc' = [proc EXCEPT ![p].at = "on"]
     ELSE /\ present' = present /\ proc' = [proc EXCEPT ![p].at = "off"]
  /\ UNCHANGED <<schema, log, mover, mark, late, acked, budget>>
Write(p) ==
  /\ proc[p].at = "on" /\ budget.write > 0
  /\ IF p \in present[proc[p].where]
     THEN /\ log' = [log EXCEPT ![proc[p].where] = @ \cup {budget.write}] /\ acked' = acked \cup {budget.write}
          /\ budget' = [budget EXCEPT !.write = @ - 1] /\ proc' = proc
     ELSE /\ proc' = [proc EXCEPT ![p].at = "off"] /\ UNCHANGED <<log, acked, budget>>
  /\ UNCHANGED <<schema, present, mover, mark, late>>

(* ------------------------------------------------------------------ the mover *)
Stop == /\ mover.at # "idle" /\ mover' = Idle /\ UNCHANGED <<schema, present, log, proc, mark, late, acked, budget>>
\* Opens the destination: one that is empty, in which a copy was begun, or given up.
Open ==
  LET r == [where |-> "dst", was |-> schema["dst"], now |-> Next1("copying")] IN
  /\ mover.at = "idle" /\ budget.move > 0 /\ schema["dst"] # Live
  /\ schema' = [schema EXCEPT !["dst"] = r.now] /\ mark' = mark + 1
  /\ mover' = [Idle EXCEPT !.at = IF On("after") THEN "opened" ELSE "copied", !.mark = r.now, !.log = log["src"],
                            !.seen = IF On("first") THEN {} ELSE present["src"]]
  /\ budget' = [budget EXCEPT !.move = @ - 1]
  /\ UNCHANGED <<present, log, proc, late, acked>>
\* Also a catalog that is set aside already: what put it back may be on its way.
SetAside ==
  LET r == [where |-> "src", was |-> schema["src"], now |-> Next1("moved")] IN
  /\ mover.at = "opened" /\ mark' = mark + 1
  /\ IF schema["src"][1] = "moved" /\ ~On("anew")
     THEN mover' = [mover EXCEPT !.at = "marked", !.src = schema["src"]] /\ UNCHANGED <<schema, late, budget>>
     ELSE \/ Answered(r) /\ mover' = [mover EXCEPT !.at = "marked", !.src = r.now]
          \/ Lose(r, budget) /\ mover' = mover
  /\ UNCHANGED <<present, log, proc, acked>>
Seen ==
  /\ mover.at = "marked" /\ mover' = [mover EXCEPT !.at = "seen", !.seen = IF On("first") THEN present["src"] ELSE @]
  /\ UNCHANGED <<schema, present, log, proc, mark, late, acked, budget>>
EndAll ==
  /\ mover.at = "seen"
  /\ IF schema["src"] = mover.src THEN present' = [present EXCEPT !["src"] = @ \ mover.seen] ELSE present' = present
  /\ mover' = [mover EXCEPT !.at = IF schema["src"] = mover.src THEN "ended" ELSE "opened"]
  /\ UNCHANGED <<schema, log, proc, mark, late, acked, budget>>
Copy ==
  /\ mover.at = "ended" /\ mover' = [mover EXCEPT !.at = "copied", !.log = log["src"]]
  /\ UNCHANGED <<schema, present, log, proc, mark, late, acked, budget>>
Level ==
  /\ mover.at = "copied"
  /\ IF schema["dst"] = mover.mark
     THEN log' = [log EXCEPT !["dst"] = mover.log] /\ mover' = [mover EXCEPT !.at = IF mover.src = None THEN "opened" ELSE "level"]
     ELSE log' = log /\ mover' = Idle
  /\ UNCHANGED <<schema, present, proc, mark, late, acked, budget>>
\* Where the copy is not taken again after the catalog was set aside.
Skip == /\ ~On("after") /\ mover.at = "ended" /\ mover' = [mover EXCEPT !.at = "level"]
        /\ UNCHANGED <<schema, present, log, proc, mark, late, acked, budget>>
Finish ==
  LET r == [where |-> "dst", was |-> mover.mark, now |-> Live] IN
  /\ mover.at = "level" /\ mover' = Idle /\ (Answered(r) \/ Lose(r, budget) \/ (~Takes(r) /\ UNCHANGED <<schema, late, budget>>))
  /\ UNCHANGED <<present, log, proc, mark, acked>>
\* Gives the move up: first the destination, then the catalog is put back.
GiveUp ==
  /\ mover.at = "idle" /\ budget.abort > 0 /\ schema["dst"] # Live
  /\ (On("given") => schema' = [schema EXCEPT !["dst"] = Next1("given")]) /\ (~On("given") => schema' = schema)
  /\ mark' = mark + 1 /\ mover' = [Idle EXCEPT !.at = "given"] /\ budget' = [budget EXCEPT !.abort = @ - 1]
  /\ UNCHANGED <<present, log, proc, late, acked>>
PutBack ==
  LET r == [where |-> "src", was |-> schema["src"], now |-> Live] IN
  /\ mover.at = "given" /\ schema["src"][1] = "moved" /\ mover' = Idle /\ (Answered(r) \/ Lose(r, budget))
  /\ UNCHANGED <<present, log, proc, mark, acked>>

Next ==
  \/ \E p \in Procs : Begin(p) \/ Write(p) \/ \E e \in Engines : Look(p, e)
  \/ \E r \in late : Deliver(r)
  \/ Stop \/ Open \/ SetAside \/ Seen \/ EndAll \/ (On("after") /\ Copy) \/ Level \/ Skip \/ Finish \/ GiveUp \/ PutBack
Spec == Init /\ [][Next]_vars

(* ------------------------------------------------------------------ what holds *)
\* Once the destination is in service the catalog that was moved takes no writes.
OneInService == schema["dst"] = Live => schema["src"] # Live /\ present["src"] = {}
\* What was acknowledged is in the catalog that is in service.
Kept == schema["dst"] = Live => acked \subseteq log["dst"]
\* To be violated: both engines have taken writes, one after a move was given up and put back.
Idleness == ~(schema["dst"] = Live /\ Cardinality(log["dst"]) = Writes /\ budget.abort < Aborts)
================================================================================
