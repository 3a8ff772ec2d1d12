-------------------------------- MODULE Pieces --------------------------------
(* A put of a large object commits pieces while it goes on: groups, held by hidden records until its last commit names them in the
   object (rule 44). What a put or a delete takes from a large object is held by such a record too, until it is swept. One key, a group
   for each piece and one for the last commit, a block for each group. Requests whose answers are lost may take effect late.      *)
EXTENDS Naturals, Integers, Sequences, FiniteSets, TLC
CONSTANTS
  Puts,      \* put -> its groups in order; the last is committed with the object
  Deletes,   \* how many deletes there may be
  Lost,      \* how many answers of commits may be lost
  Sweepers,
  Without
On(rule) == rule \notin Without

Long == [o \in {"a", "b"} |-> IF o = "a" THEN <<1, 2, 3>> ELSE <<4>>]
Two == [o \in {"a", "b"} |-> IF o = "a" THEN <<1, 2>> ELSE <<3, 4>>]
Ops == DOMAIN Puts
Range(s) == {s[i] : i \in DOMAIN s}
Groups == UNION {Range(Puts[o]) : o \in Ops}
None == [of |-> "", groups |-> {}]
Off == [on |-> FALSE, blocks |-> {}, pieces |-> 0]
Absent == -1

VARIABLES
  object,  \* record of the object: the put it is of, and its groups
  live,    \* group -> its live count, Absent where there is no group
  pieces,  \* records [of, at, groups]: of a put, its piece; or what was taken from an object by one
  intent,  \* put -> its intent
  ended,   \* put -> how it ended, as the catalog remembers it
  graves, store, \* groups whose block is in the graveyard, on its node
  op,      \* put -> where its gateway is
  late,    \* requests whose answer was lost
  sweep,   \* sweeper -> the record it works on
  budget
vars == <<object, live, pieces, intent, ended, graves, store, op, late, sweep, budget>>

Nothing == [of |-> "", at |-> 0, groups |-> {}]
Init ==
  /\ object = None /\ live = [g \in Groups |-> Absent] /\ pieces = {}
  /\ intent = [o \in Ops |-> Off] /\ ended = [o \in Ops |-> ""]
  /\ graves = {} /\ store = {} /\ late = {}
  /\ op = [o \in Ops |-> [at |-> "idle", index |-> 1, intent |-> Off, object |-> None]]
  /\ sweep = [s \in Sweepers |-> Nothing] /\ budget = [delete |-> Deletes, lost |-> Lost]

Catalog == <<object, live, pieces, intent, ended, graves>>
PieceOf(o, i) == [of |-> o, at |-> i, groups |-> {Puts[o][i]}]
Own(o) == {p \in pieces : p.of = o /\ p.at > 0}
\* What is taken from an object stays counted, and a record holds it that is nobody's.
Taken(name) == IF On("held") /\ object.groups # {} THEN {[of |-> name, at |-> 0, groups |-> object.groups]} ELSE {}

(* ------------------------------------------------------------------ transactions *)
Abort(o) ==
  /\ intent' = [intent EXCEPT ![o] = Off] /\ ended' = [ended EXCEPT ![o] = "aborted"]
  /\ graves' = graves \cup intent[o].blocks /\ UNCHANGED <<object, live, pieces>>
IsLast(r) == r.index = Len(Puts[r.of])
Holds(r) ==
  /\ On("intent") \/ IsLast(r) => intent[r.of] = r.intent
  /\ IsLast(r) => object = r.object /\ Own(r.of) = {PieceOf(r.of, i) : i \in 1..(r.index - 1)}
Apply(r) ==
  LET o == r.of  g == Puts[o][r.index] IN
  IF ~IsLast(r)
  THEN /\ live' = [live EXCEPT ![g] = 1] /\ pieces' = pieces \cup {PieceOf(o, r.index)}
       /\ intent' = [intent EXCEPT ![o] = IF @.on THEN [@ EXCEPT !.pieces = @ + 1, !.blocks = IF On("blocks") THEN @ \ {g} ELSE @] ELSE @]
       /\ UNCHANGED <<object, ended, graves>>
  ELSE /\ live' = [live EXCEPT ![g] = 1]
       /\ pieces' = (IF On("last") THEN pieces \ Own(o) ELSE pieces) \cup Taken(o)
       /\ intent' = [intent EXCEPT ![o] = Off] /\ ended' = [ended EXCEPT ![o] = "committed"]
       /\ object' = [of |-> o, groups |-> Range(Puts[o])] /\ graves' = graves

(* ------------------------------------------------------------------ the gateway of a put *)
Begin(o) ==
  /\ op[o].at = "idle" /\ op' = [op EXCEPT ![o].at = "write"]
  /\ intent' = [intent EXCEPT ![o] = [on |-> TRUE, blocks |-> Range(Puts[o]), pieces |-> 0]]
  /\ UNCHANGED <<object, live, pieces, ended, graves, store, late, sweep, budget>>
\* What a gateway reads before it sends a piece, and after an answer that is none: the piece is there, or the attempt has ended, or it is
\* sent (again).
Looked(o) ==
  LET r == op[o] IN
  IF PieceOf(o, r.index) \in pieces THEN [r EXCEPT !.at = "write", !.index = @ + 1]
  ELSE IF ~intent[o].on THEN [r EXCEPT !.at = IF ended[o] = "committed" THEN "done" ELSE "failed"]
  ELSE [r EXCEPT !.at = "send", !.intent = intent[o], !.object = IF r.index = Len(Puts[o]) THEN object ELSE None]
Look(o) ==
  /\ op[o].at = "look" /\ op' = [op EXCEPT ![o] = Looked(o)]
  /\ UNCHANGED <<object, live, pieces, intent, ended, graves, store, late, sweep, budget>>
\* It writes without knowing whether its attempt is still active.
Write(o) ==
  /\ op[o].at = "write" /\ store' = store \cup {Puts[o][op[o].index]} /\ op' = [op EXCEPT ![o] = Looked(o)]
  /\ UNCHANGED <<object, live, pieces, intent, ended, graves, late, sweep, budget>>
Send(o) ==
  LET r == [of |-> o, index |-> op[o].index, intent |-> op[o].intent, object |-> op[o].object] IN
  /\ op[o].at = "send"
  /\ \/ /\ Holds(r) /\ Apply(r) /\ UNCHANGED <<late, budget>>
        /\ op' = [op EXCEPT ![o] = IF IsLast(r) THEN [@ EXCEPT !.at = "done"] ELSE [@ EXCEPT !.at = "write", !.index = @ + 1]]
     \/ /\ ~Holds(r) /\ op' = [op EXCEPT ![o].at = "look"] /\ UNCHANGED <<Catalog, late, budget>>
     \/ /\ budget.lost > 0 /\ late' = late \cup {r} /\ budget' = [budget EXCEPT !.lost = @ - 1]
        /\ op' = [op EXCEPT ![o].at = IF IsLast(r) THEN "settle" ELSE "look"] /\ UNCHANGED Catalog
  /\ UNCHANGED <<store, sweep>>
\* The last commit of an attempt is settled, as any is (rule 8).
Settle(o) ==
  /\ op[o].at = "settle" /\ op' = [op EXCEPT ![o].at = "look"]
  /\ IF intent[o].on THEN Abort(o) ELSE UNCHANGED Catalog
  /\ UNCHANGED <<store, late, sweep, budget>>
Deliver(r) ==
  /\ r \in late /\ late' = late \ {r} /\ (IF Holds(r) THEN Apply(r) ELSE UNCHANGED Catalog)
  /\ UNCHANGED <<store, op, sweep, budget>>

(* ------------------------------------------------------------------ everybody else *)
\* Also what the next start of a gateway does that crashed, at any step.
Expire(o) == /\ intent[o].on /\ Abort(o) /\ UNCHANGED <<store, op, late, sweep, budget>>
Delete ==
  /\ budget.delete > 0 /\ object # None /\ object' = None /\ pieces' = pieces \cup Taken("delete")
  /\ budget' = [budget EXCEPT !.delete = @ - 1]
  /\ UNCHANGED <<live, intent, ended, graves, store, op, late, sweep>>
\* A piece is swept whose attempt is not active; what is nobody's always is.
SweepLook(s) ==
  \E p \in pieces :
    /\ sweep[s] = Nothing /\ (On("gone") /\ p.at > 0 => ~intent[p.of].on) /\ sweep' = [sweep EXCEPT ![s] = p]
    /\ UNCHANGED <<object, live, pieces, intent, ended, graves, store, op, late, budget>>
SweepEnd(s) ==
  LET p == sweep[s] IN
  /\ p # Nothing /\ sweep' = [sweep EXCEPT ![s] = Nothing]
  /\ IF On("once") => p \in pieces
     THEN /\ pieces' = pieces \ {p}
          /\ live' = [g \in Groups |-> IF g \in p.groups THEN live[g] - 1 ELSE live[g]]
     ELSE UNCHANGED <<pieces, live>>
  /\ UNCHANGED <<object, intent, ended, graves, store, op, late, budget>>
Free(g) ==
  /\ live[g] = 0 /\ live' = [live EXCEPT ![g] = Absent] /\ graves' = graves \cup {g}
  /\ UNCHANGED <<object, pieces, intent, ended, store, op, late, sweep, budget>>
Bury(g) ==
  /\ g \in graves /\ graves' = graves \ {g} /\ store' = store \ {g}
  /\ UNCHANGED <<object, live, pieces, intent, ended, op, late, sweep, budget>>
Announced == UNION {intent[o].blocks : o \in Ops}
Orphan(g) ==
  /\ g \in store /\ live[g] = Absent /\ g \notin graves /\ g \notin Announced /\ store' = store \ {g}
  /\ UNCHANGED <<object, live, pieces, intent, ended, graves, op, late, sweep, budget>>

Next ==
  \/ \E o \in Ops : Begin(o) \/ Write(o) \/ Look(o) \/ Send(o) \/ Settle(o) \/ Expire(o)
  \/ \E r \in late : Deliver(r)
  \/ Delete
  \/ \E s \in Sweepers : SweepLook(s) \/ SweepEnd(s)
  \/ \E g \in Groups : Free(g) \/ Bury(g) \/ Orphan(g)
Spec == Init /\ [][Next]_vars

(* ------------------------------------------------------------------ what holds *)
\* Readers see whole versions, and all of their blocks are there.
Durable == object # None => object.groups = Range(Puts[object.of]) /\ \A g \in object.groups : live[g] > 0 /\ g \in store
\* Live counts are the extents of objects and of pieces.
LiveCount == \A g \in Groups :
  LET holders == Cardinality({p \in pieces : g \in p.groups}) + (IF g \in object.groups THEN 1 ELSE 0) IN
  IF live[g] = Absent THEN holders = 0 ELSE live[g] = holders
\* What is live is neither about to be deleted nor announced.
NoLiveDelete == \A g \in Groups : live[g] # Absent => g \notin graves /\ g \notin Announced /\ g \in store
\* An active attempt has all pieces that it has committed.
Kept == \A o \in Ops : intent[o].on => Own(o) = {PieceOf(o, i) : i \in 1..intent[o].pieces}
\* To be violated: a put is deleted, another of the key expired after its piece, and nothing is left of either.
Idleness == ~(op["a"].at = "done" /\ op["b"].at = "failed" /\ op["b"].index = 2 /\ store = {})
================================================================================
