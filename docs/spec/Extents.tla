------------------------------ MODULE Extents ------------------------------
(* One object whose bytes lie in two groups. What Commit checks of one group is taken for granted here; this module is
   about the records of several groups being read and changed together: snapshots, updates over both groups, transitions
   of one of them meanwhile, moves of the bytes, and a reader that sends part after part.

   A group holds one part: one data block and one parity block. The value of a data block is the number of the write that
   made it; a parity block remembers that value and the scheme it was computed for. Dead blocks vanish at any time.    *)
EXTENDS Naturals, FiniteSets, TLC
CONSTANTS
  Nil, Gateways,
  Kinds,       \* operations that may be started, a subset of {"put", "update", "transition", "move"}
  Operations,  \* how many are started
  Reads,       \* how many reads
  Without      \* rules that are switched off
On(rule) == rule \notin Without

VARIABLES
  next, object, group,  \* catalog: next stamp; revision and group of each part; group -> generation, scheme, slots
  blocks, dead,         \* what is stored, as <<group, slot, stamp, value, scheme>>; addresses of dead blocks
  gateway, reader, reads,
  truth,                \* ghost: value of each part by the last committed write
  fault
vars == <<next, object, group, blocks, dead, gateway, reader, reads, truth, fault>>

Parts == {1, 2}
Stamps == 1..(Operations + 1)
Groups == Stamps \X Parts     \* named after the stamp that made it and the part that it was made for
Schemes == {1, 2}
Address(b) == <<b[1], b[2], b[3]>>
Addresses(g, r) == {<<g, "data", r.data>>, <<g, "parity", r.parity>>}
Stored(a) == \E b \in blocks : Address(b) = a
Block(a) == CHOOSE b \in blocks : Address(b) = a
Idle == [at |-> "idle"]
Init ==
  /\ next = 2 /\ reads = 0 /\ fault = "none" /\ dead = {} /\ reader = Idle
  /\ object = [revision |-> 1, groups |-> [p \in Parts |-> <<1, p>>]]
  /\ group = [g \in Groups |-> IF g[1] = 1 THEN [generation |-> 1, scheme |-> 1, data |-> 1, parity |-> 1] ELSE Nil]
  /\ blocks = UNION {{<<<<1, p>>, "data", 1, 1, 0>>, <<<<1, p>>, "parity", 1, 1, 1>>} : p \in Parts}
  /\ gateway = [c \in Gateways |-> Idle]
  /\ truth = [p \in Parts |-> 1]

(* ------------------------------------------------------------------ operations *)
Records == [p \in Parts |-> group[object.groups[p]]]
Begin(c, kind, parts, groups, new) ==
  /\ next' = next + 1 /\ blocks' = blocks \cup new
  /\ gateway' = [gateway EXCEPT ![c] = [at |-> "staged", kind |-> kind, stamp |-> next, parts |-> parts, groups |-> groups,
                   object |-> object, records |-> Records, new |-> {Address(b) : b \in new}, left |-> parts]]
  /\ UNCHANGED <<object, group, dead, reader, reads, truth, fault>>
Fresh == [p \in Parts |-> <<next, p>>]
Both(g, value, scheme) == {<<g, "data", next, value, 0>>, <<g, "parity", next, value, scheme>>}
Value(p) == Block(<<object.groups[p], "data", Records[p].data>>)[4]
Put(c) == Begin(c, "put", Parts, Fresh, UNION {Both(<<next, p>>, next, 1) : p \in Parts})
Update(c, parts) == Begin(c, "update", parts, object.groups, UNION {Both(object.groups[p], next, Records[p].scheme) : p \in parts})
Move(c) == Begin(c, "move", Parts, Fresh, UNION {Both(<<next, p>>, Value(p), 1) : p \in Parts})
Transition(c, p) == Begin(c, "transition", {p}, object.groups, {<<object.groups[p], "parity", next, Value(p), 3 - Records[p].scheme>>})

\* The commit of some of an attempt's parts: all of them, where one transaction commits everything.
First(parts) == CHOOSE p \in parts : \A q \in parts : p <= q
Condition(r, parts) ==
  /\ r.kind \in {"update", "move"} => (On("object") => object = r.object)
  /\ r.kind \in {"update", "transition"} =>
       \A p \in (IF On("everygroup") THEN parts ELSE {First(r.parts)}) :
         group[r.groups[p]] # Nil /\ group[r.groups[p]].generation = r.records[p].generation
  /\ \A p \in parts : r.kind \in {"update", "transition"} => group[r.groups[p]] # Nil
After(r, p) ==
  LET g == group[r.groups[p]] IN
  CASE r.kind \in {"put", "move"} -> [generation |-> r.stamp, scheme |-> 1, data |-> r.stamp, parity |-> r.stamp]
    [] r.kind = "update" -> [g EXCEPT !.generation = r.stamp, !.data = r.stamp, !.parity = r.stamp]
    [] OTHER -> [g EXCEPT !.generation = r.stamp, !.parity = r.stamp, !.scheme = 3 - r.records[p].scheme]
Apply(r, parts) ==
  /\ group' = [g \in Groups |-> IF \E p \in parts : r.groups[p] = g THEN After(r, CHOOSE p \in parts : r.groups[p] = g) ELSE group[g]]
  /\ dead' = dead \cup UNION {LET g == r.groups[p] IN IF group[g] = Nil THEN {} ELSE Addresses(g, group[g]) \ Addresses(g, After(r, p)) : p \in parts}
  /\ object' = CASE r.kind = "put" -> [revision |-> r.stamp, groups |-> r.groups]
                 [] r.kind = "update" -> [object EXCEPT !.revision = r.stamp]
                 [] r.kind = "move" -> [object EXCEPT !.groups = r.groups]
                 [] OTHER -> object
  /\ truth' = IF r.kind \in {"put", "update"} THEN [p \in Parts |-> IF p \in r.parts THEN r.stamp ELSE truth[p]] ELSE truth
  /\ reader' = IF reader.at = "idle" THEN reader ELSE [reader EXCEPT !.legal = @ \cup {truth'}]
Commit(c) ==
  LET r == gateway[c] IN
  /\ r.at = "staged"
  /\ \E parts \in (IF On("onecommit") \/ r.kind # "update" THEN {r.left} ELSE {{p} : p \in r.left}) :
       /\ Condition(r, parts) /\ Apply(r, parts)
       /\ gateway' = [gateway EXCEPT ![c] = IF parts = r.left THEN Idle
                        ELSE [r EXCEPT !.left = @ \ parts, !.object = object']]  \* goes on with the rest
  /\ UNCHANGED <<next, blocks, reads, fault>>
GiveUp(c) == /\ gateway[c].at = "staged" /\ gateway[c].left = gateway[c].parts
             /\ dead' = dead \cup gateway[c].new /\ gateway' = [gateway EXCEPT ![c] = Idle]
             /\ UNCHANGED <<next, object, group, blocks, reader, reads, truth, fault>>
\* A group that no part of the object lies in is freed.
Free(g) == /\ group[g] # Nil /\ \A p \in Parts : object.groups[p] # g
           /\ group' = [group EXCEPT ![g] = Nil] /\ dead' = dead \cup Addresses(g, group[g])
           /\ UNCHANGED <<next, object, blocks, gateway, reader, reads, truth, fault>>
Vanish == /\ \E a \in dead : Stored(a) /\ blocks' = {b \in blocks : Address(b) # a}
          /\ UNCHANGED <<next, object, group, dead, gateway, reader, reads, truth, fault>>

(* ------------------------------------------------------------------ a reader that sends part after part: rules 14, 15 *)
\* A snapshot takes two readings: the object says which groups there are to read, and is read again together with them.
Open == /\ reader.at = "idle" /\ reads < Reads /\ reads' = reads + 1
        /\ reader' = [at |-> "opening", o |-> object, records |-> Records, got |-> [p \in Parts |-> 0], legal |-> {truth}]
        /\ UNCHANGED <<next, object, group, blocks, dead, gateway, truth, fault>>
TakeSnapshot ==
  /\ reader.at = "opening"
  /\ reader' = IF object = reader.o THEN [reader EXCEPT !.at = "reading", !.records = Records] ELSE [reader EXCEPT !.o = object]
  /\ UNCHANGED <<next, object, group, blocks, dead, gateway, reads, truth, fault>>
Send(p) ==
  /\ reader.at = "reading" /\ reader.got[p] = 0 /\ \A q \in Parts : q < p => reader.got[q] # 0
  /\ LET g == reader.o.groups[p]
         record == IF On("onesnapshot") \/ group[g] = Nil THEN reader.records[p] ELSE group[g]
         a == <<g, "data", record.data>> IN
     IF Stored(a) THEN reader' = [reader EXCEPT !.got[p] = Block(a)[4]]
     ELSE \* a miss: the catalog is read again
          reader' = CASE object.revision = reader.o.revision -> [reader EXCEPT !.o = object, !.records = Records]
                      [] object.revision # reader.o.revision /\ (On("stream") \/ p = 1) -> Idle  \* broken off, or begun anew
                      [] OTHER -> [reader EXCEPT !.o = object, !.records = Records]
  /\ UNCHANGED <<next, object, group, blocks, dead, gateway, reads, truth, fault>>
\* The records of parts that follow are read, or read anew, together with that of the object, before they are sent.
Look == /\ reader.at = "reading" /\ (object # reader.o \/ Records # reader.records)
        /\ reader' = IF On("look") /\ object.revision # reader.o.revision THEN Idle  \* broken off
                     ELSE [reader EXCEPT !.o = object, !.records = Records]
        /\ UNCHANGED <<next, object, group, blocks, dead, gateway, reads, truth, fault>>
Return == /\ reader.at = "reading" /\ \A p \in Parts : reader.got[p] # 0
          /\ fault' = IF reader.got \in reader.legal THEN fault ELSE "a reader returned a stale or torn value"
          /\ reader' = Idle
          /\ UNCHANGED <<next, object, group, blocks, dead, gateway, reads, truth>>

CanBegin(c) == gateway[c].at = "idle" /\ next <= Operations + 1
Next ==
  \/ \E c \in Gateways :
       \/ /\ CanBegin(c)
          /\ \/ "put" \in Kinds /\ Put(c)
             \/ "update" \in Kinds /\ \E parts \in (SUBSET Parts) \ {{}} : Update(c, parts)
             \/ "move" \in Kinds /\ (\A p \in Parts : Stored(<<object.groups[p], "data", Records[p].data>>)) /\ Move(c)
             \/ "transition" \in Kinds /\ \E p \in Parts : Stored(<<object.groups[p], "data", Records[p].data>>) /\ Transition(c, p)
       \/ Commit(c) \/ GiveUp(c)
  \/ \E g \in Groups : Free(g)
  \/ Vanish
  \/ Open \/ TakeSnapshot \/ Look \/ Return \/ \E p \in Parts : Send(p)
Spec == Init /\ [][Next]_vars

(* ------------------------------------------------------------------ invariants *)
Durable == \A p \in Parts : LET g == object.groups[p] IN
  group[g] # Nil /\ Stored(<<g, "data", group[g].data>>) /\ Block(<<g, "data", group[g].data>>)[4] = truth[p]
Coded == \A g \in Groups : group[g] # Nil =>
  LET r == group[g]  d == <<g, "data", r.data>>  p == <<g, "parity", r.parity>> IN
  Stored(d) /\ Stored(p) /\ Block(p)[4] = Block(d)[4] /\ Block(p)[5] = r.scheme
NoLiveDelete == \A g \in Groups : group[g] # Nil => Addresses(g, group[g]) \cap dead = {}
NoFault == fault = "none"
Symmetry == Permutations(Gateways)
=============================================================================
