------------------------------- MODULE Widen -------------------------------
(* Groups whose columns lie in other groups: a group that is dissolved into columns of wider ones keeps its name and its
   extents, and its record says where its columns lie now (rules 29 to 31 by names instead of moved extents). Widening
   and narrowing are one commit each that compares every record it changes; against updates, deletes, transitions, repairs,
   freeing, a reader, lost nodes, and a rebuild of the catalog from headers and manifests.

   What Commit.tla checks is taken for granted and abstracted, as in Growth: an attempt's blocks land together when its
   records are read, it commits in one later step or is aborted at any time, dead blocks vanish at any time. One parity row
   (m = 1), groups of one column that may have a second one: the region is one kept and one dissolved group. A cell holds
   a range for every key; a parity block remembers the cells it was made of and the manifest: <<key, revision, group that
   the extent names, column that it lies in>>. Column x lies on node x, parity on node 2.                              *)
EXTENDS Naturals, FiniteSets, TLC
CONSTANTS
  Keys, Nil,
  Scene,       \* records in the beginning: "both" (one object in each group), "pair" (both in the second), "wide" (as "pair", widened),
               \* "three" (an object in the second, which lies in the first, and one in a third)
  Kinds,       \* operations that may be started
  Operations,  \* how many
  AtOnce,      \* how many are under way at once
  Losses,      \* how often a node loses its blocks
  Reads,       \* how many reads
  Without      \* rules that are switched off
On(rule) == rule \notin Without
ASSUME Kinds \subseteq {"update", "delete", "widen", "narrow", "transition", "repair"}

VARIABLES
  next, object, group, intent, graves,  \* catalog
  blocks, struck,                       \* stores: blocks; blocks that a fault took (ghost)
  attempt,                              \* stamp -> what a gateway is about to commit
  reader, loss, reads,
  truth, gone,                          \* ghost: key -> value by the last committed write; keys that were deleted
  fault                                 \* ghost
catalog == <<next, object, group, intent, graves>>
vars == <<catalog, blocks, struck, attempt, reader, loss, reads, truth, gone, fault>>

Groups == IF Scene = "three" THEN {1, 2, 3} ELSE {1, 2}
First == 4
Stamps == First..(First + Operations - 1)
Cols == {0, 1}
P == 2
Slots == 0..2
NoCell == [k \in Keys |-> 0]
Garbage == 99
Idle == [at |-> "idle"]
KeyA == CHOOSE k \in Keys : TRUE

(* ------------------------------------------------------------------ blocks *)
DataBlock(g, x, s, cell) == [g |-> g, slot |-> x, s |-> s, cell |-> cell, cells |-> [y \in Cols |-> NoCell], names |-> {}]
ParityBlock(g, s, cells, names) == [g |-> g, slot |-> P, s |-> s, cell |-> NoCell, cells |-> cells, names |-> names]
Address(b) == <<b.g, b.slot, b.s>>
Stored(a) == \E b \in blocks : Address(b) = a
Block(a) == CHOOSE b \in blocks : Address(b) = a
Used(record) == {x \in Slots : record.slots[x] # 0}
At(g, record, x) == <<g, x, record.slots[x]>>
Addresses(g, record) == {At(g, record, x) : x \in Used(record)}
Live == UNION {IF group[g] = Nil THEN {} ELSE Addresses(g, group[g]) : g \in Groups}
Whole(g, record) == \A a \in Addresses(g, record) : Stored(a)
CellNow(g, record, x) == IF record.slots[x] = 0 THEN NoCell ELSE Block(At(g, record, x)).cell
CellsNow(g, record) == [x \in Cols |-> CellNow(g, record, x)]
\* Where the column of group g lies, by these records: a group and its column.
Place(records, g) == IF records[g].lies = Nil THEN <<g, 0>> ELSE <<records[g].lies, 1>>
\* What key k's range comes out as where it lies, by these records; {} if it cannot be had.
Decoded(records, g, k) ==
  LET at == Place(records, g)  h == at[1]  x == at[2]  record == records[h] IN
  IF record = Nil THEN {}
  ELSE IF record.slots[x] # 0 /\ Stored(At(h, record, x)) THEN {Block(At(h, record, x)).cell[k]}
  ELSE IF record.slots[x] # 0 /\ \A y \in Used(record) \ {x} : Stored(At(h, record, y))
       THEN LET p == Block(At(h, record, P)) IN
            {IF \A y \in Cols \ {x} : p.cells[y] = CellNow(h, record, y) THEN p.cells[x][k] ELSE Garbage}
       ELSE {}

(* ------------------------------------------------------------------ in the beginning *)
GroupOf == [k \in Keys |-> CASE Scene = "both" /\ k = KeyA -> 1 [] Scene = "three" /\ k # KeyA -> 3 [] OTHER -> 2]
In(g) == {k \in Keys : GroupOf[k] = g}
CellOf(g) == [k \in Keys |-> IF GroupOf[k] = g THEN 1 ELSE 0]
NamesOf(g, x) == {<<k, 1, g, x>> : k \in In(g)}
IsWide == Scene \in {"wide", "three"}
Record(g) ==
  [gen |-> g, lies |-> IF IsWide /\ g = 2 THEN 1 ELSE Nil,
   slots |-> [x \in Slots |-> IF IsWide /\ g = 2 THEN 0 ELSE IF x \in {0, P} \/ (IsWide /\ g = 1) THEN g ELSE 0],
   live |-> Cardinality(In(g)) + IF IsWide /\ g = 1 THEN 1 ELSE 0]
InitBlocks(g) ==
  IF IsWide /\ g = 2 THEN {}
  ELSE {DataBlock(g, 0, g, CellOf(g))} \cup (IF IsWide /\ g = 1 THEN {DataBlock(1, 1, 1, CellOf(2))} ELSE {})
       \cup {ParityBlock(g, g, [x \in Cols |-> IF x = 0 THEN CellOf(g) ELSE IF IsWide /\ g = 1 THEN CellOf(2) ELSE NoCell],
                         NamesOf(g, 0) \cup (IF IsWide /\ g = 1 THEN NamesOf(2, 1) ELSE {}))}
Init ==
  /\ next = First
  /\ object = [k \in Keys |-> [rev |-> 1, g |-> GroupOf[k]]]
  /\ group = [g \in Groups |-> Record(g)]
  /\ intent = [s \in Stamps |-> "none"] /\ graves = {} /\ struck = {}
  /\ blocks = UNION {InitBlocks(g) : g \in Groups}
  /\ attempt = [s \in Stamps |-> Nil]
  /\ reader = Idle /\ loss = 0 /\ reads = 0
  /\ truth = [k \in Keys |-> 1] /\ gone = {} /\ fault = "none"

(* ------------------------------------------------------------------ attempts *)
Active == {s \in Stamps : intent[s] = "act"}
\* An operation reads its records in one snapshot; what it stages lands.
Begin(s, kind, k, g, h, x, new) ==
  /\ s = next /\ s \in Stamps /\ Cardinality(Active) < AtOnce /\ kind \in Kinds
  /\ next' = next + 1 /\ intent' = [intent EXCEPT ![s] = "act"]
  /\ blocks' = blocks \cup new
  /\ attempt' = [attempt EXCEPT ![s] = [kind |-> kind, k |-> k, g |-> g, h |-> h, x |-> x, object |-> object, was |-> group,
                                         new |-> {Address(b) : b \in new}]]
  /\ UNCHANGED <<object, group, graves, struck, reader, loss, reads, truth, gone, fault>>
Sound(g) == group[g] # Nil /\ Used(group[g]) # {} /\ Whole(g, group[g])
NamesNow(g) == Block(At(g, group[g], P)).names

Update(s, k) ==
  /\ object[k] # Nil
  /\ LET at == Place(group, object[k].g)  g == at[1]  x == at[2] IN
     /\ Sound(g)
     /\ LET cells == CellsNow(g, group[g])
            cell == [cells[x] EXCEPT ![k] = s]
            names == {n \in NamesNow(g) : ~(n[1] = k /\ n[4] = x)} \cup {<<k, s, object[k].g, x>>} IN
        Begin(s, "update", k, g, g, x, {DataBlock(g, x, s, cell), ParityBlock(g, s, [cells EXCEPT ![x] = cell], names)})
Delete(s, k) == object[k] # Nil /\ Begin(s, "delete", k, object[k].g, object[k].g, 0, {})
\* The column of h becomes the second one of g: its bytes are copied, and added to the parity.
Widen(s, g, h) ==
  /\ g # h /\ Sound(g) /\ Sound(h) /\ group[g].slots[1] = 0 /\ group[h].slots[1] = 0
  /\ LET cell == CellNow(h, group[h], 0)
         cells == [CellsNow(g, group[g]) EXCEPT ![1] = cell]
         brought == IF On("names") THEN {<<n[1], n[2], n[3], 1>> : n \in NamesNow(h)} ELSE {} IN
     Begin(s, "widen", KeyA, g, h, 1, {DataBlock(g, 1, s, cell), ParityBlock(g, s, cells, NamesNow(g) \cup brought)})
\* The second column of g becomes that of h again, with a parity of its own, and is taken from the parity of g.
Narrow(s, g, h) ==
  /\ g # h /\ Sound(g) /\ group[g].slots[1] # 0 /\ group[h] # Nil /\ group[h].lies = g
  /\ LET cell == CellNow(g, group[g], 1)
         kept == {n \in NamesNow(g) : n[4] = 0}
         moved == {<<n[1], n[2], n[3], 0>> : n \in NamesNow(g) \ kept} IN
     Begin(s, "narrow", KeyA, g, h, 1,
       {DataBlock(h, 0, s, cell), ParityBlock(h, s, [x \in Cols |-> IF x = 0 THEN cell ELSE NoCell], moved),
        ParityBlock(g, s, [CellsNow(g, group[g]) EXCEPT ![1] = NoCell], kept)})
Transition(s, g) == Sound(g) /\ Begin(s, "transition", KeyA, g, g, P, {ParityBlock(g, s, CellsNow(g, group[g]), NamesNow(g))})
Repair(s, g, x) ==
  /\ group[g] # Nil /\ x \in Used(group[g]) /\ ~Stored(At(g, group[g], x))
  /\ \A y \in Used(group[g]) \ {x} : Stored(At(g, group[g], y))
  /\ LET old == CHOOSE b \in struck : Address(b) = At(g, group[g], x) \* the names of a lost row are those of another row
         p == IF x = P THEN old ELSE Block(At(g, group[g], P)) IN
     Begin(s, "repair", KeyA, g, g, x,
       {IF x = P THEN ParityBlock(g, s, CellsNow(g, group[g]), old.names) ELSE DataBlock(g, x, s, p.cells[x])})

(* ------------------------------------------------------------------ the commit *)
\* Records that an operation changes, each compared by its generation. Without "source": the group whose column is copied is not.
Changed(r) == IF r.kind = "delete" THEN {} ELSE {r.g, r.h}
Compared(r) == IF On("gen") THEN (IF On("source") \/ r.kind # "widen" THEN Changed(r) ELSE {r.g}) ELSE {}
AsRead(r) == \A g \in Changed(r) : group[g] # Nil /\ (g \in Compared(r) => group[g].gen = r.was[g].gen)
NewRecord(s, r, g) ==
  LET base == [group[g] EXCEPT !.gen = s] IN
  CASE r.kind = "widen" /\ g = r.g -> [base EXCEPT !.slots = [@ EXCEPT ![1] = s, ![P] = s], !.live = IF On("count") THEN @ + 1 ELSE @]
    [] r.kind = "widen" /\ g = r.h -> [base EXCEPT !.slots = [x \in Slots |-> 0], !.lies = r.g]
    [] r.kind = "narrow" /\ g = r.g -> [base EXCEPT !.slots = [@ EXCEPT ![1] = 0, ![P] = s], !.live = IF On("count") THEN @ - 1 ELSE @]
    [] r.kind = "narrow" /\ g = r.h -> [base EXCEPT !.slots = [x \in Slots |-> IF x \in {0, P} THEN s ELSE 0], !.lies = Nil]
    [] r.kind = "update" -> [base EXCEPT !.slots = [@ EXCEPT ![r.x] = s, ![P] = s]]
    [] OTHER -> [base EXCEPT !.slots = [@ EXCEPT ![r.x] = s]]
Condition(s, r) ==
  /\ AsRead(r)
  /\ \A g \in Changed(r) : group[g].gen < s  \* rule 21
  /\ r.kind \in {"update", "delete"} => object[r.k] # Nil /\ object[r.k] = r.object[r.k]
  /\ r.kind = "update" => r.object[r.k].rev < s
  /\ \A a \in r.new : Stored(a)
  /\ r.kind # "repair" => \A g \in Changed(r) : Whole(g, NewRecord(s, r, g))
Commit(s) ==
  LET r == attempt[s]
      records == [g \in Groups |-> IF g \in Changed(r) THEN NewRecord(s, r, g) ELSE group[g]] IN
  /\ intent[s] = "act" /\ r # Nil /\ Condition(s, r)
  /\ group' = [g \in Groups |-> IF r.kind = "delete" /\ g = r.g THEN [group[g] EXCEPT !.live = @ - 1] ELSE records[g]]
  /\ object' = CASE r.kind = "update" -> [object EXCEPT ![r.k].rev = s] [] r.kind = "delete" -> [object EXCEPT ![r.k] = Nil] [] OTHER -> object
  /\ truth' = CASE r.kind = "update" -> [truth EXCEPT ![r.k] = s] [] r.kind = "delete" -> [truth EXCEPT ![r.k] = 0] [] OTHER -> truth
  /\ gone' = IF r.kind = "delete" THEN gone \cup {r.k} ELSE gone
  /\ graves' = graves \cup UNION {IF group[g] = Nil THEN {} ELSE Addresses(g, group[g]) \ Addresses(g, records[g]) : g \in Changed(r)}
  /\ intent' = [intent EXCEPT ![s] = "com"] /\ attempt' = [attempt EXCEPT ![s] = Nil]
  /\ reader' = IF reader.at = "idle" THEN reader ELSE [reader EXCEPT !.legal = @ \cup {truth'[reader.k]}]
  /\ UNCHANGED <<next, blocks, struck, loss, reads, fault>>
Abort(s) ==
  /\ intent[s] = "act" /\ intent' = [intent EXCEPT ![s] = "abt"]
  /\ graves' = graves \cup attempt[s].new /\ attempt' = [attempt EXCEPT ![s] = Nil]
  /\ UNCHANGED <<next, object, group, blocks, struck, reader, loss, reads, truth, gone, fault>>
Bury == /\ graves # {} /\ graves' = {} /\ blocks' = {b \in blocks : Address(b) \notin graves}
        /\ UNCHANGED <<next, object, group, intent, struck, attempt, reader, loss, reads, truth, gone, fault>>
\* A column that lies in another group counts there as something that lives, until its group is freed.
Free(g) ==
  /\ group[g] # Nil /\ group[g].live = 0
  /\ LET in == group[g].lies IN
     group' = [h \in Groups |-> IF h = g THEN Nil
                                ELSE IF h = in /\ group[h] # Nil /\ On("count") THEN [group[h] EXCEPT !.live = @ - 1] ELSE group[h]]
  /\ graves' = graves \cup Addresses(g, group[g])
  /\ UNCHANGED <<next, object, intent, blocks, struck, attempt, reader, loss, reads, truth, gone, fault>>
Lost(there, g) == Cardinality({a \in Addresses(g, group[g]) : \A b \in there : Address(b) # a})
Loss(n) == LET left == {b \in blocks : b.slot # n} IN
           /\ loss < Losses /\ left # blocks /\ \A g \in Groups : group[g] # Nil => Lost(left, g) <= 1
           /\ loss' = loss + 1 /\ blocks' = left /\ struck' = struck \cup (blocks \ left)
           /\ UNCHANGED <<catalog, attempt, reader, reads, truth, gone, fault>>

(* ------------------------------------------------------------------ a reader *)
\* One snapshot has the object, its group, and the group that this one lies in. Without: the last is read when it is needed.
Open(k) == /\ reader.at = "idle" /\ reads < Reads /\ object[k] # Nil /\ reads' = reads + 1
           /\ reader' = [at |-> "reading", k |-> k, o |-> object[k], records |-> group, legal |-> {truth[k]}, whole |-> On("snapshot")]
           /\ UNCHANGED <<catalog, blocks, struck, attempt, loss, truth, gone, fault>>
\* Without "snapshot": the record of the group that the column lies in is read some time after that of its own.
Follow == /\ reader.at = "reading" /\ ~reader.whole
          /\ reader' = [reader EXCEPT !.whole = TRUE,
               !.records = [g \in Groups |-> IF g = reader.o.g THEN reader.records[g] ELSE group[g]]]
          /\ UNCHANGED <<catalog, blocks, struck, attempt, loss, reads, truth, gone, fault>>
Got == Decoded(reader.records, reader.o.g, reader.k)
Return ==
  /\ reader.at = "reading" /\ reader.whole /\ Got # {}
  /\ reader' = Idle /\ fault' = IF Got \subseteq reader.legal THEN fault ELSE "a reader returned a stale or mixed value"
  /\ UNCHANGED <<catalog, blocks, struck, attempt, loss, reads, truth, gone>>
Refresh ==
  /\ reader.at = "reading" /\ reader.whole /\ Got = {}
  /\ LET o == object[reader.k] IN
     IF o = Nil THEN reader' = Idle /\ fault' = fault
     ELSE /\ reader' = [reader EXCEPT !.o = o, !.records = group, !.whole = TRUE]
          /\ fault' = IF o = reader.o /\ group = reader.records THEN "a reader reports the loss of data" ELSE fault
  /\ UNCHANGED <<catalog, blocks, struck, attempt, loss, reads, truth, gone>>

Next ==
  \/ \E s \in {next} :
       \/ \E k \in Keys : Update(s, k) \/ Delete(s, k)
       \/ \E g, h \in Groups : Widen(s, g, h) \/ Narrow(s, g, h)
       \/ \E g \in Groups : Transition(s, g)
       \/ \E g \in Groups, x \in Slots : Repair(s, g, x)
  \/ \E s \in Stamps : Commit(s) \/ Abort(s)
  \/ Bury
  \/ \E g \in Groups : Free(g)
  \/ \E n \in Slots : Loss(n)
  \/ \E k \in Keys : Open(k)
  \/ Follow \/ Return \/ Refresh
Spec == Init /\ [][Next]_vars

(* ------------------------------------------------------------------ invariants *)
Durable == \A k \in Keys :
  /\ (object[k] = Nil) <=> (truth[k] = 0)
  /\ object[k] # Nil => group[object[k].g] # Nil /\ Decoded(group, object[k].g, k) = {truth[k]}
Coded == \A g \in Groups : group[g] # Nil =>
  LET record == group[g] IN
  /\ record.lies # Nil => record.slots = [x \in Slots |-> 0]
  /\ \A a \in Addresses(g, record) : Stored(a) \/ \E b \in struck : Address(b) = a
  /\ record.slots[P] # 0 /\ Stored(At(g, record, P)) =>
       \A x \in Cols : IF record.slots[x] = 0 THEN Block(At(g, record, P)).cells[x] = NoCell
                       ELSE Stored(At(g, record, x)) => Block(At(g, record, P)).cells[x] = CellNow(g, record, x)
\* What lies in another group lies in its second column, and no two lie in one.
Lies == \A g \in Groups : group[g] # Nil /\ (IF group[g] = Nil THEN FALSE ELSE group[g].lies # Nil) =>
  group[group[g].lies] # Nil /\ (IF group[group[g].lies] = Nil THEN FALSE ELSE group[group[g].lies].slots[1] # 0)
LiveCount == \A g \in Groups : group[g] # Nil =>
  group[g].live = Cardinality({k \in Keys : object[k] # Nil /\ (IF object[k] = Nil THEN FALSE ELSE object[k].g = g)})
                  + Cardinality({h \in Groups : IF group[h] = Nil THEN FALSE ELSE group[h].lies = g})
NoLiveDelete == graves \cap Live = {}
NoLeak == \A b \in blocks : Address(b) \in Live \cup graves \/ intent[b.s] = "act"
NoFault == fault = "none"
\* A rebuild of the catalog from blocks. A parity block tells a state of its group if every cell that it covers is stored as it
\* was; it names ranges with the revisions they had, and the group that their extents name. Each group is rebuilt in one state,
\* and what extents name lies as a whole in one place: the group's own column, or the second one of another group. There is a
\* choice of states and places in which each key has the highest revision that any state names, and that is the truth.
Ours(g, x) == {b \in blocks : b.g = g /\ b.slot = x}
States(g) == {p \in Ours(g, P) : \A x \in Cols : p.cells[x] = NoCell \/ \E b \in Ours(g, x) : b.cell = p.cells[x]}
Told(g) == IF On("union") THEN States(g) ELSE {p \in States(g) : \A q \in States(g) : q.s <= p.s}
Candidates(k) == UNION {UNION {{<<n[2], p.cells[n[4]][k]>> : n \in {m \in p.names : m[1] = k}} : p \in Told(g)} : g \in Groups}
Best(k) == {c \in Candidates(k) : \A d \in Candidates(k) : d[1] <= c[1]}
Choices == {f \in [Groups -> UNION {Told(g) : g \in Groups} \cup {Nil}] : \A g \in Groups : f[g] = Nil \/ f[g] \in Told(g)}
\* A place has of every key what the catalog has, or what was written over it and is not committed (to which a rebuild is blind). What
\* two attempts that are not committed wrote of one cell is in no state together; where all is committed the highest revisions are.
Quiet == \A b \in blocks : b.s < First \/ intent[b.s] = "com"
Holds(p, g, x, k) == p # Nil /\ \E n \in (IF p = Nil THEN {} ELSE p.names) :
  /\ n[1] = k /\ n[3] = g /\ n[4] = x
  /\ IF Quiet THEN \E c \in Best(k) : n[2] = c[1] ELSE n[2] >= object[k].rev
IsRight(f) == \A g \in Groups :
  LET mine == {k \in Keys \ gone : object[k] # Nil /\ GroupOf[k] = g} IN
  mine = {} \/ \E place \in {<<g, 0>>} \cup {<<h, 1>> : h \in Groups \ {g}} : \A k \in mine : Holds(f[place[1]], g, place[2], k)
Rebuilt == loss = 0 =>
  /\ \A k \in Keys \ gone : object[k] # Nil => Best(k) # {} /\ \A c \in Best(k) : c[2] = truth[k] \/ (IF c[2] < First THEN FALSE ELSE intent[c[2]] # "com")
  /\ \E f \in Choices : IsRight(f)
Idleness == ~(\A s \in Stamps : intent[s] = "com")
=============================================================================
