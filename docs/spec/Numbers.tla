-------------------------------- MODULE Numbers --------------------------------
(* The numbers of stamps: drawn from clocks that differ, and yet what is asked for after a commit has a greater stamp (rule 43), so
   that of two versions of an object in the stores that did not overlap the one with the greater stamp is the later one. One object; a
   put is announced, staged and committed, an update is announced over what was read before, a delete is one update. A put may
   also use an attempt that its gateway announced ahead, before anybody asked for it (rule G22): its commit fails where it met what is
   above it.                                                                                                                      *)
EXTENDS Naturals, Sequences, FiniteSets, TLC
CONSTANTS
  Gateways, Ops,  \* each operation is of one gateway
  Kind,           \* operation -> "put", "ahead", "update", "delete"
  Of,             \* operation -> gateway
  Times,          \* what clocks may show
  Without
On(rule) == rule \notin Without

Two == [o \in Ops |-> IF o = "d" THEN "delete" ELSE IF o = "u" THEN "update" ELSE IF o \in {"e", "f"} THEN "ahead" ELSE "put"]
Spread == [o \in Ops |-> IF o \in {"a", "d", "e", "u"} THEN "g" ELSE "h"]

None == <<0, "">>
Rank(g) == IF g = "" THEN 0 ELSE IF g = "g" THEN 1 ELSE 2
\* Stamps are ordered by their numbers, and those with one number by their salts.
Less(s, t) == s[1] < t[1] \/ (s[1] = t[1] /\ Rank(s[2]) < Rank(t[2]))
Max(S) == CHOOSE x \in S : \A y \in S : y <= x

VARIABLES
  floor,   \* the record meta/next: every stamp that is drawn is above it as it was read
  object,  \* revision of the object; None: there is none
  upto,    \* gateway -> the record of the last number that it drew
  op,      \* operation -> its state
  log,     \* commits in their order, None for a delete, a ghost
  drawn    \* stamps that were drawn, a ghost
vars == <<floor, object, upto, op, log, drawn>>

Idle == [at |-> "idle", floor |-> 0, object |-> None, upto |-> 0, basis |-> None, stamp |-> None, begun |-> 0]
Init ==
  /\ floor = 0 /\ object = None /\ upto = [g \in Gateways |-> 0]
  /\ op = [o \in Ops |-> Idle] /\ log = <<>> /\ drawn = {}

\* An update reads the object it changes first.
Ask(o) ==
  /\ op[o].at = "idle" /\ Kind[o] # "ahead" /\ (Kind[o] = "update" => object # None)
  /\ op' = [op EXCEPT ![o].at = "asked", ![o].basis = object, ![o].begun = Len(log)]
  /\ UNCHANGED <<floor, object, upto, log, drawn>>
\* What an announcement, or a delete, reads as of one instant.
Read(o) ==
  /\ op[o].at = "asked"
  /\ op' = [op EXCEPT ![o].at = "read", ![o].floor = floor, ![o].object = object, ![o].upto = upto[Of[o]]]
  /\ UNCHANGED <<floor, object, upto, log, drawn>>
Above(o, time) == Max({time, op[o].floor + 1, op[o].upto + 1}
  \cup (IF On("over") /\ Kind[o] = "put" THEN {op[o].object[1] + 1} ELSE {})
  \cup (IF On("met") /\ Kind[o] = "update" THEN {op[o].basis[1] + 1} ELSE {}))
\* It is repeated from its reading if another announcement of the gateway was faster.
Announce(o) ==
  \E time \in Times :
    LET r == op[o]  g == Of[o]  s == <<Above(o, time), g>> IN
    /\ r.at = "read" /\ Kind[o] # "delete"
    /\ IF On("own") /\ upto[g] # r.upto
       THEN op' = [op EXCEPT ![o].at = "asked"] /\ UNCHANGED <<upto, drawn>>
       ELSE IF Kind[o] = "update" /\ object # r.basis
       THEN op' = [op EXCEPT ![o].at = "failed"] /\ UNCHANGED <<upto, drawn>>
       ELSE /\ op' = [op EXCEPT ![o].at = "staged", ![o].stamp = s] /\ drawn' = drawn \cup {s}
            /\ upto' = [upto EXCEPT ![g] = s[1]]
    /\ UNCHANGED <<floor, object, log>>
\* A hand: it is announced above all that its gateway drew and the floor, as they are read in the transaction, and what it will write
\* over is not known.
Hand(o) ==
  \E time \in Times :
    LET g == Of[o]  s == <<Max({time, floor + 1, upto[g] + 1}), g>> IN
    /\ op[o].at = "idle" /\ Kind[o] = "ahead"
    /\ op' = [op EXCEPT ![o].at = "hand", ![o].stamp = s] /\ drawn' = drawn \cup {s} /\ upto' = [upto EXCEPT ![g] = s[1]]
    /\ UNCHANGED <<floor, object, log>>
Use(o) ==
  /\ op[o].at = "hand" /\ op' = [op EXCEPT ![o].at = "staged", ![o].begun = Len(log)]
  /\ UNCHANGED <<floor, object, upto, log, drawn>>
\* A put by a hand must not be below what it writes over, nor below what was taken away since: its gateway draws anew then.
Overtaken(o) == Kind[o] = "ahead" /\ ((On("ahead") /\ ~Less(object, op[o].stamp)) \/ (On("away") /\ floor >= op[o].stamp[1]))
\* A commit that writes over a greater stamp leaves the floor there, as a delete does.
Commit(o) ==
  LET r == op[o] IN
  /\ r.at = "staged"
  /\ IF (Kind[o] = "update" /\ object # r.basis) \/ Overtaken(o)
     THEN op' = [op EXCEPT ![o].at = "failed"] /\ UNCHANGED <<object, log, floor>>
     ELSE /\ op' = [op EXCEPT ![o].at = "done"] /\ object' = r.stamp /\ log' = Append(log, r.stamp)
          /\ floor' = (IF On("raise") /\ Less(r.stamp, object) THEN Max({floor, object[1]}) ELSE floor)
  /\ UNCHANGED <<upto, drawn>>
\* A delete leaves the floor at the revision that it deletes, or above it.
Delete(o) ==
  \E time \in Times :
    LET r == op[o]  raise == On("floor") /\ r.floor < r.object[1] IN
    /\ r.at = "read" /\ Kind[o] = "delete" /\ r.object # None
    /\ IF object # r.object \/ (raise /\ floor # r.floor)
       THEN op' = [op EXCEPT ![o].at = "asked"] /\ UNCHANGED <<floor, object, log>>
       ELSE /\ op' = [op EXCEPT ![o].at = "done"] /\ object' = None /\ log' = Append(log, None)
            /\ floor' = (IF raise THEN Max({time, r.object[1]}) ELSE floor)
    /\ UNCHANGED <<upto, drawn>>

Next == \E o \in Ops : Hand(o) \/ Use(o) \/ Ask(o) \/ Read(o) \/ Announce(o) \/ Commit(o) \/ Delete(o)
Spec == Init /\ [][Next]_vars

(* ------------------------------------------------------------------ what holds *)
\* What was asked for after a commit has a greater stamp, also where what was committed was deleted in between.
Grow == \A o \in Ops : op[o].stamp # None /\ (Kind[o] = "ahead" => op[o].at = "done") => \A i \in 1..op[o].begun : Less(log[i], op[o].stamp)
\* What a gateway drew is known of it, and is of one attempt.
Known == \A s \in drawn : s[1] <= upto[s[2]]
Unique == Cardinality(drawn) = Cardinality({o \in Ops : op[o].stamp # None})
\* To be violated: two puts are committed in another order than their stamps', and one after a delete.
Idleness == ~(Len(log) = 4 /\ Less(log[2], log[1]) /\ \E d \in Ops : Kind[d] = "delete" /\ op[d].at = "done")
================================================================================
